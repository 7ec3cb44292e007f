"""A broker of a simulated cluster: it registers and lives for the controller, follows the metadata
log, has a replica of some partitions (`replica.py`) and fetches those that it follows
(`pulling.py`); what it leads it gives to the others in their sessions."""

from itertools import count
from types import SimpleNamespace

from sim.node import Node
from sim.replicas.controller import TOPIC
from sim.replicas.paper import PaperLog
from sim.replicas.pulling import Pulling
from sim.replicas.replica import LEAST_IN_SYNC, Replica
from sim.replicas.talk import (
    Alter,
    Assign,
    Beat,
    EarliestIs,
    Entries,
    Fetched,
    Follow,
    Had,
    Key,
    Part,
    Produced,
    Register,
    directory,
)

from appliance.base import errors
from appliance.ioproc.replication.replicas import Replicas
from appliance.metadata.changes import PartitionAdded, PartitionChanged
from appliance.metadata.image import MetadataImage
from appliance.replication.role import role_of
from appliance.replication.throttle import ReplicationThrottle

BEAT_MS = 12
AGAIN_MS = 4
LAG_MS = 50
LONG_POLL_MS = 15
LOOK_MS = 5
MOST = 6
"""Entries of an answer."""


class Session:
    """Of a follower, with its leader. epoch: of the fetch that is due. positions: what it named.
    told: partition → (high watermark, log start) as it was last told. refused: what is to be told
    of those that it has just named."""

    def __init__(self, number):
        self.number = number
        self.epoch = 1
        self.positions = {}
        self.told = {}
        self.refused = {}


class Served:
    """What `Replicas` is told of the process."""

    def __init__(self, broker):
        self._broker = broker
        self.rows = SimpleNamespace(changed={})

    @property
    def now_ms(self):
        return self._broker.now_ms


class Elsewhere:
    """What `Replicas` knows of the other nodes: `replicas.Cluster`."""

    def __init__(self, broker):
        self._broker = broker
        self.node_id = broker.number

    def broker_epoch(self, node):
        broker = self._broker.image.brokers.get(node)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return -1
        return broker.epoch

    def holds(self, replica, node):
        return True

    def lag_ms(self):
        return LAG_MS

    def propose(self, replica, change):
        epochs = change.leader_epoch, change.partition_epoch
        broker, isr = self._broker, tuple(change.isr.items())
        broker.tell_controller(Alter(broker.number, broker.epoch, replica.key, *epochs, isr))
        return True


class Broker(Node):
    """durable: whether the disk counts, or the page cache (docs/decisions/0002). unclean: power
    took what was not synced, and the controller has not heard of it yet. disks: how many it had
    before this one. has: how much of the metadata log it has."""

    drifts = True
    replica = Replica
    away_ms = (1, 120)

    def __init__(self, world, number, controller, ledgers, *, durable):
        super().__init__(world, f"n{number}")
        self.number = number
        self.controller = controller
        self.ledgers = ledgers
        self.durable = durable
        self.unclean = False
        self.disks = 0
        self.logs = {}
        self.replicas = {}
        self.has = 0
        self.last_epoch = -1
        self.incarnations = count(1)

    # A life ---------------------------------------------------------------------------------------

    def begin(self):
        self.to_controller = None
        self.pullings = {}
        self.sessions = {}
        self.parked = {}
        self.session_numbers = count(self.life * 1000 + 1)
        self.epoch = -1
        self.wants_to_end = False
        self.incarnation = bytes([self.number]) + next(self.incarnations).to_bytes(15, "big")
        self.image = MetadataImage()
        self.image.applied_offset = -1
        self.led = Replicas(Served(self), Elsewhere(self), ReplicationThrottle())
        self.replicas = {key: self.replica(self, key, log) for key, log in self.logs.items()}
        self.apply(self.has)
        self.beat()
        self.follow_metadata()
        self.after(LOOK_MS, self.look)
        self.after(30, self.checkpoint)

    def stop(self, *, power):
        if power:
            power = not self.spared()
        self.world.moved = True
        if power:
            for log in self.logs.values():
                log.power_cut(self.world.rng)
            self.has = self.world.rng.randint(max(0, self.has - 3), self.has)
            self.unclean = self.unclean or not self.durable
        super().stop(power=power)

    def spared(self):
        """Whether what it has in its page cache may be nowhere else, or min.insync.replicas would
        have lost theirs before the controller heard of the first: then nobody is left of whom
        KIP-966 promises anything."""
        return not self.durable and (self.precious() or self.others_lost())

    def others_lost(self):
        """Whether too many that may lead have lost what they had, and the controller does not know
        it yet."""
        for key in self.ledgers:
            partition = self.controller.partition(key[1])
            eligible = {*partition.isr, *partition.eligible_leader_replicas} - {self.number}
            lost = sum(self.world.nodes[f"n{number}"].unclean for number in eligible)
            if self.number in partition.replicas and lost + 1 >= LEAST_IN_SYNC:
                return True
        return False

    def wipe(self):
        """While it is away and fenced, its disk is replaced by an empty one, where
        min.insync.replicas others have all that was ever shown."""
        images = self.controller.agreed, self.controller.image
        fenced = all(image.brokers[self.number].fenced for image in images)
        if self.up or not fenced or self.precious(LEAST_IN_SYNC):
            return
        self.say("has an empty disk")
        self.world.reached("a disk is replaced")
        self.world.moved = True
        self.logs, self.replicas = {}, {}
        self.has, self.unclean = 0, True
        self.disks += 1

    def precious(self, least=1):
        """Whether something that was shown may be on fewer than so many other disks that count."""
        for key, ledger in self.ledgers.items():
            partition = self.controller.partition(key[1])
            eligible = {*partition.isr, *partition.eligible_leader_replicas}
            have = sum(self.others_have(other, key, ledger) for other in eligible)
            if self.number in partition.replicas and have < least:
                return True
        return False

    def others_have(self, number, key, ledger):
        other = self.world.nodes[f"n{number}"]
        if other is self or other.unclean:
            return False
        if key not in other.logs:
            return ledger.end == 0
        log = other.logs[key]
        return (log.synced if self.durable else log.end) >= ledger.end

    def checkpoint(self):
        for replica in self.replicas.values():
            replica.log.shown = replica.progress.high_watermark
        self.after(30, self.checkpoint)

    # The controller -------------------------------------------------------------------------------

    def tell_controller(self, message):
        if self.to_controller is None:
            self.to_controller = self.world.network.connect(self, "controller")
        self.to_controller.send(message)

    def beat(self):
        if self.epoch < 0:
            previous = -1 if self.unclean else self.epoch_before()
            self.tell_controller(Register(self.number, self.incarnation, previous, self.disks))
        else:
            applied = self.image.applied_offset
            self.tell_controller(Beat(self.number, self.epoch, applied, self.wants_to_end))
            self.tell_folders()
        self.after(BEAT_MS, self.beat)

    def epoch_before(self):
        """That of the life before, which ended in order: what it had written it has. It may never
        have heard which that was."""
        known = self.controller.image.brokers.get(self.number)
        return self.last_epoch if known is None else known.epoch

    def tell_folders(self):
        """Where the replicas are of which the metadata says something else."""
        mine = directory(self.number, self.disks)
        partitions = {key: self.image.partition(TOPIC, key[1]) for key in self.replicas}
        other = tuple(
            key
            for key, one in partitions.items()
            if one is not None  # power took what it knew of it
            and self.number in one.replicas
            and one.directories[one.replicas.index(self.number)] != mine
        )
        if other:
            self.tell_controller(Assign(self.number, self.epoch, self.disks, other))

    def follow_metadata(self):
        self.tell_controller(Follow(self.has))

    def ends_in_order(self):
        self.say("wants to end")
        self.wants_to_end = True

    def on_registered(self, end, message):
        if self.epoch < 0 and message.epoch >= 0:
            self.epoch = self.last_epoch = message.epoch
            self.unclean = False

    @property
    def known_epoch(self):
        """Its own, as the metadata has it."""
        broker = self.image.brokers.get(self.number)
        return broker.epoch if broker else -1

    def begin_sessions(self):
        """Leaders have to hear who fetches now: what nothing happens to is not named again."""
        for pulling in self.pullings.values():
            pulling.begin_anew()

    def on_beaten(self, end, message):
        if message.stale:
            self.epoch = -1
        elif message.shut_down and self.wants_to_end:
            self.world.reached("an end is in order")
            for log in self.logs.values():
                log.synced = log.end
            super().stop(power=False)

    def on_records(self, end, message):
        if message.offset == self.has:
            self.apply(message.end)
            self.has = message.end
        self.follow_metadata()

    def apply(self, end):
        """Replay the metadata log, and be what it says. What it says of a life before this one is
        over: nobody is to be led by what a log says that may have lost its end since."""
        changed, epoch = {}, self.known_epoch
        for offset in range(self.image.applied_offset + 1, end):
            for change in self.image.apply(offset, self.controller.log[offset]):
                if isinstance(change, PartitionAdded | PartitionChanged):
                    changed[Key((change.topic_id, change.index))] = change.name
        for key, name in changed.items():
            self.partition_is(key, self.image.partition(name, key[1]))
        if self.known_epoch != epoch:
            self.begin_sessions()
            for key in list(self.replicas):
                self.drop_unless_mine(key, self.image.partition(TOPIC, key[1]))

    def knows_itself(self):
        """Whether the metadata that it has says that it is registered as it is now."""
        broker = self.image.brokers.get(self.number)
        return broker is not None and broker.incarnation_id == self.incarnation

    def partition_is(self, key, partition):
        if self.number in partition.replicas:
            if key not in self.replicas:
                self.logs[key] = PaperLog()
                self.replicas[key] = self.replica(self, key, self.logs[key])
            role = role_of(partition, self.number)
            self.replicas[key].is_now(partition.leader_epoch, role, self.now_ms)
        else:
            self.drop_unless_mine(key, partition)

    def drop_unless_mine(self, key, partition):
        """Not by what the metadata said before power took its end: a node acts upon it only when it
        has all that it had acted upon before (`QuorumDriver.level`)."""
        mine = partition is None or self.number in partition.replicas
        if key in self.replicas and not mine and self.knows_itself():
            self.say(f"drops {key}")
            self.fetch_from(key, -1)
            self.replicas[key].ends()
            del self.replicas[key], self.logs[key]

    def look(self):
        if self.now_ms >= self.led.due_ms:
            self.led.tick(self.now_ms)
        self.after(LOOK_MS, self.look)

    def on_altered(self, end, message):
        """Only what is certain is told: it was not done, and will not be."""
        if message.error in (errors.INELIGIBLE_REPLICA, errors.OPERATION_NOT_ATTEMPTED):
            replica = self.replicas.get(message.key)
            self.led.refused(replica, message.partition_epoch, self.now_ms)

    # What arrives ---------------------------------------------------------------------------------

    def received(self, end, message):
        getattr(self, f"on_{type(message).__name__.lower()}")(end, message)

    def lost(self, end):
        if end is self.to_controller:
            self.to_controller = None
            self.led.control_died()
            self.after(AGAIN_MS, self.follow_metadata)
        if pulling := self.pulling_over(end):
            pulling.gone()
        self.parked.pop(end, None)

    def on_produce(self, end, message):
        if replica := self.replicas.get(message.key):
            replica.produce(end, message)
        else:
            end.send(Produced(message.token, -1, self.leader_of(message.key)))

    def leader_of(self, key):
        partition = self.image.partition(TOPIC, key[1])
        return partition.leader if partition else -1

    def on_read(self, end, message):
        if replica := self.replicas.get(message.key):
            replica.read(end, message)
        else:
            end.send(Had(message.key, 0, -1, 0, Entries()))

    def on_trim(self, end, message):
        if replica := self.replicas.get(message.key):
            replica.trim(message.offset)

    # Following ------------------------------------------------------------------------------------

    def fetch_from(self, key, leader):
        """This partition is fetched from that node, -1: from nobody."""
        for number, pulling in self.pullings.items():
            if number != leader:
                pulling.drop(key)
        if leader >= 0:
            if leader not in self.pullings:
                self.pullings[leader] = Pulling(self, leader)
            self.pullings[leader].settle(key)

    def on_fetched(self, end, message):
        if pulling := self.pulling_over(end):
            pulling.fetched(message)

    def on_earliestis(self, end, message):
        if pulling := self.pulling_over(end):
            pulling.begins_at(message)

    def pulling_over(self, end):
        return next((one for one in self.pullings.values() if one.link is end), None)

    # Leading --------------------------------------------------------------------------------------

    def on_earliest(self, end, message):
        replica = self.replicas.get(message.key)
        knows = replica and replica.leads and replica.leader_epoch == message.leader_epoch
        start = replica.log.start if knows else -1
        end.send(EarliestIs(message.key, message.leader_epoch, start))

    def on_fetch(self, end, message):
        session = self.session_of(message)
        if session is None:
            end.send(Fetched(70 if message.session_id else 71, 0))
            return
        named = dict(message.partitions)
        for key in message.forgotten:
            session.positions.pop(key, None)
            session.told.pop(key, None)
        for key, position in named.items():
            session.positions[key] = position
            session.told.pop(key, None)
            if key in self.replicas:
                who = message.broker, message.broker_epoch
                session.refused[key] = self.replicas[key].heard(*who, position)
        self.parked[end] = session, message.broker
        if not self.answer(end):
            wait_ms = min(message.wait_ms, LONG_POLL_MS)
            self.after(wait_ms, self.answer_now, end, session.epoch)

    def session_of(self, message):
        """As KIP-227: a new one, the one that goes on, or None."""
        if message.session_epoch == 0:
            session = self.sessions[message.broker] = Session(next(self.session_numbers))
            return session
        session = self.sessions.get(message.broker)
        if session is None or session.number != message.session_id:
            return None
        if session.epoch != message.session_epoch:
            return None
        session.epoch += 1
        return session

    def answer_now(self, end, epoch):
        if end in self.parked and self.parked[end][0].epoch == epoch:
            self.answer(end, even_nothing=True)

    def answer(self, end, *, even_nothing=False):
        """What this fetch gets; whether there was something."""
        session, _ = self.parked[end]
        parts = []
        for key, position in session.positions.items():
            part = session.refused.pop(key, None) or self.part_for(key, position)
            shown = part.high_watermark, part.log_start
            if part.error or part.diverging or part.entries or session.told.get(key) != shown:
                session.told[key] = shown if not part.error else None
                parts.append(part)
        if parts or even_nothing:
            del self.parked[end]
            end.send(Fetched(0, session.number, tuple(parts)))
        return bool(parts)

    def part_for(self, key, position):
        replica = self.replicas.get(key)
        return replica.part_for(position, MOST) if replica else Part(key, 3)

    def news(self):
        """A log has more, a high watermark rose: those who wait are answered."""
        for end in list(self.parked):
            self.answer(end)
