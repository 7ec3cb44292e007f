"""A machine that is one replica of a quorum: today's `QuorumDriver` over `MetadataQuorum`, the log
and `quorum-state`. What carries its requests, its threads and who leads by it are a test's."""

from unittest.mock import patch

from sim.agreed.talk import Answer, Ask, Done, Put
from sim.node import Node

from appliance.base.errors import NETWORK_EXCEPTION, NONE, REQUEST_TIMED_OUT, PeerError
from appliance.config.broker import BrokerConfig
from appliance.control.quorum import first_voters, metadata_quorum
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum.driver import CONTRADICTS, QuorumDriver
from appliance.control.quorum.metadata_log import open_log
from appliance.control.quorum.metadata_quorum import VotingSetup, open_quorum
from appliance.control.quorum.served_requests import QuorumParts
from appliance.control.quorum.snapshot_fetch import BeginAgain
from appliance.control.quorum.snapshots import SnapshotLimits
from appliance.controller.registration import bootstrap_records
from appliance.metadata.follower import Follower
from appliance.metadata.identity import Identity
from appliance.metadata.record_versions import encode
from appliance.peers.conversation import NEVER
from appliance.quorum import voters as electing
from appliance.quorum.replica import Replica
from appliance.quorum.role import Role
from appliance.quorum.times import Times
from appliance.ring.partition_table import PartitionTable
from appliance.wire import kraft_records as kraft
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, request_type
from tests.callers import rights

DATA = "/data"
FETCH, BEGIN, END = 1, 53, 54
LEVEL = 30
LIMITS = SnapshotLimits(snapshot_bytes=1 << 30, snapshot_ms=0, segment_bytes=4000)
SHORT = SnapshotLimits(snapshot_bytes=1200, snapshot_ms=0, segment_bytes=600)
"""Of logs that go back so little that who was away needs a snapshot."""
TIMES = Times(election_timeout=100, fetch_timeout=200, election_backoff=100, lost=10)
SETTINGS = {
    "controller.quorum.fetch.timeout.ms": "200",
    "controller.quorum.request.timeout.ms": "100",
    "controller.quorum.retry.backoff.ms": "5",
    "controller.quorum.fetch.max.bytes": "600",
}


SETTINGS_OF_A_CLIENT = 20
"""Which it sets again and again, so that a snapshot takes no longer at the end than it did."""


def recorded(name):
    """The record that a client's wish becomes. name: the client's, and the number of the wish."""
    who, number = name.split(":")
    again, which = divmod(int(number), SETTINGS_OF_A_CLIENT)
    name = f"{who}:{str(which).zfill(len(number))}"
    return kraft.ConfigRecord(resource_type=4, resource_name="", name=name, value=chr(33 + again))


class Way:
    """A connection at a time to another machine."""

    def __init__(self, machine, target):
        self.machine = machine
        self.target = target
        self.end = None
        self.waiting = {}  # number → (key, version, who hears the answer)

    def ask_peer(self, key, version, values, done, timeout_ms, lowest):
        machine = self.machine
        machine.count += 1
        body = encode_request(build(request_type(key, version), values))
        if self.end is None:
            self.end = machine.world.network.connect(machine, f"n{self.target}")
            machine.ways[self.end] = self
        self.waiting[machine.count] = key, version, done
        if key == BEGIN:
            machine.begins_epoch(self.target)
        self.end.send(Ask(machine.count, key, version, body))
        machine.after(timeout_ms, self.late, machine.count)

    def run_once(self):
        return NEVER

    def close(self):
        pass

    def answered(self, answer):
        key, version, done = self.waiting.pop(answer.number, (0, 0, None))
        if done is not None:
            try:
                found = decode_response(key, version, answer.body)
                if key == FETCH and done.args[-1] != self.machine.driver._number:
                    self.machine.world.reached("an answer comes too late")
                if key == END and refused(found):
                    self.machine.world.reached("a hand-over is refused")
                done(found)
            except BeginAgain as why:
                self.machine.takes_a_snapshot(why)

    def late(self, number):
        if number in self.waiting:
            _, _, done = self.waiting.pop(number)
            self.hang_up(REQUEST_TIMED_OUT, done)

    def hang_up(self, code, *first):
        if self.end is not None:
            del self.machine.ways[self.end]
            self.end.close()
        self.end = None
        others, self.waiting = self.waiting, {}
        for done in first:
            done(PeerError(code, "late"))
        for _, _, done in others.values():
            done(PeerError(NETWORK_EXCEPTION, "gone"))
        self.machine.turn()


def refused(found):
    """Whether an answer has an error, of all or of the one partition."""
    parts = [one for topic in found.topics for one in topic.partitions]
    return found.error_code or any(one.error_code for one in parts)


class Voter(Node):
    """number: its id. voters: the ids of those who elect. disks: how many it had before this one.
    snapshots: how many it has written in this life. loaded_leading: whether a snapshot took the
    place of what it had while it led."""

    replica_of = Replica

    def __init__(self, world, number, voters, ledger, disk=None, limits=LIMITS, *, first=None):
        """first: the node that begins alone with voters that come and go (KIP-853); who reads the
        settings of this one asks it for them."""
        self.drifts = first is None
        super().__init__(world, f"n{number}", disk)
        self.limits = limits
        self.number = number
        self.voters = voters
        self.ledger = ledger
        self.first = first
        self.replica = self.log = self.quorum = None
        self.disks = 0
        self.directory = self.new_directory()
        self.loaded_leading = False
        self.published = 0  # in memory that outlives a process, not a machine
        self.static = tuple(
            electing.Voter(
                one, endpoints=(electing.ControllerEndpoint("CONTROLLER", f"n{one}", one + 1),)
            )
            for one in voters
        )
        listed = ",".join(f"{one}@n{one}:{one + 1}" for one in voters)
        found = {"controller.quorum.voters": listed}
        if first is not None:
            found = {
                "controller.quorum.bootstrap.servers": f"n{first}:{first + 1}",
                "listeners": f"PLAINTEXT://n{number}:9092,CONTROLLER://n{number}:{number + 1}",
            }
            self.static = ()
        self.config = BrokerConfig.of({**SETTINGS, "node.id": str(number), **found})
        self.own = (electing.ControllerEndpoint("CONTROLLER", f"n{number}", number + 1),)

    @property
    def held(self):
        """What is below is on its disk, whether it lives or not."""
        return self.log.durable if self.log is not None else 0

    def begin(self):
        self.ways, self.asked, self.puts = {}, {}, []
        self.count = self.tokens = self.snapshots = 0
        self.began = set()  # (epoch, whom it told that it leads)
        self.parted = -1  # the newest epoch in which its log was cut
        self.turning = self.handing_over = False
        self.armed = NEVER
        self.job = None
        repair.finish(self.disk, DATA)
        self.log = open_log(self.disk, DATA, self.limits.segment_bytes, self.now_ms, alone=False)
        self.compared = self.log.start_offset
        table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(4))), 4)
        follower = Follower(self.disk, DATA, table)
        vote = VotingSetup(
            self.static, self.published, self.chance, self.now_ms, TIMES, self.directory,
            self.seeds(),
        )  # fmt: skip
        with patch.object(metadata_quorum, "Replica", self.replica_of):
            self.quorum = open_quorum(self.disk, self.number, self.log, follower, self.limits, vote)
        self.replica = self.quorum.replica
        self.loads()
        identity = Identity("cluster", self.number, self.directory)
        parts = QuorumParts(self.quorum, identity, self.disk, self.clock, self)
        self.driver = QuorumDriver(parts, self.config, self, self.own)
        self.driver.connect(lambda _, place, __: Way(self, place[1] - 1))
        self.turn()

    def seeds(self):
        return (-2,) if self.first not in (None, self.number) else ()

    def format(self):
        """What the disk of the first voter begins with."""
        if self.first == self.number:
            voter = electing.Voter(self.number, self.directory, self.own)
            first_voters.write_first_snapshot(self.disk, DATA, [voter], 1)

    def new_directory(self):
        """What formatting gives this disk: where voters come and go, another id than the disk
        before had (KIP-853)."""
        if self.first is None:
            return bytes(16)
        return bytes([self.number + 1]) * 15 + bytes([self.disks or self.number + 1])

    def replace_disk(self):
        """While it is away it is given an empty one, formatted for this node."""
        assert not self.up
        self.say("has an empty disk")
        self.world.reached("a disk is replaced")
        self.disk = type(self.disk)(self.world.rng)
        self.disk.reached = self.world.reached
        self.disk.mkdir(DATA)
        self.disk.sync_dir("/")
        self.disks += 1
        self.directory = self.new_directory()
        self.log = self.replica = self.quorum = None
        self.published = 0

    def stop(self, *, power):
        if power:
            self.published = 0
        super().stop(power=power)

    def chance(self, most):
        return self.world.rng.randint(0, most)

    # A turn ---------------------------------------------------------------------------------------

    def turn(self):
        """What follows from what happened."""
        if self.turning or not self.up:
            return
        self.turning = True
        self.driver.tick(self.now_ms)
        self.sync()
        wait_ms = self.driver.flush(self.now_ms)
        while self.quorum.behind:
            self.quorum.advance()
        if self.driver.level:
            assert self.quorum.committed >= self.published, "what others act upon is taken back"
            self.published = self.quorum.committed
        self.ledger.agreed(self)
        self.answer_puts()
        if self.quorum.snapshot_due(self.now_ms):
            self.quorum.snapshot(self.now_ms)
            self.snapshots += 1
        self.turning = False
        due = self.now_ms + wait_ms
        if due < self.armed or self.armed <= self.now_ms:
            self.armed = due
            self.after(max(due - self.now_ms, 1), self.turn_at, due)

    def turn_at(self, due):
        if due == self.armed:
            self.armed = NEVER
            self.turn()

    def sync(self):
        if self.job is None and self.log.unsynced:
            self.job = self.log.begin_sync()
            self.after(self.world.rng.uniform(0.05, 3), self.synced)

    def synced(self):
        job, self.job = self.job, None
        job.run()
        self.quorum.end_sync(job, None)
        self.turn()

    def hand_over(self):
        self.handing_over = True
        self.replica.resign(self.now_ms)
        self.driver.apply_effects()
        self.handing_over = False
        self.turn()

    def may_change(self):
        return self.quorum.may_change

    def elect(self, electorate):
        self.quorum.elect(electorate, self.now_ms)
        self.turn()

    def electorates(self):
        """Those that the log names, (end, keys), the oldest that may still hold first."""
        return [(end, one.keys) for end, one in self.quorum.electing._said]

    # What the driver tells ------------------------------------------------------------------------

    def led(self):
        self.ledger.elected(self)
        others = [one for one in self.world.nodes.values() if isinstance(one, Voter)]
        if any(one.up and one.replica.leads for one in others if one is not self):  # the old one
            self.world.reached("two lead, in two epochs")
        self.quorum.activate(self.now_ms)
        if not self.quorum.image.metadata_version:
            self.quorum.append(bootstrap_records(), self.now_ms)

    def lost(self, end=None):
        if end is None:  # the leadership
            self.quorum.resign()
            if self.replica.role is Role.RESIGNED and not self.handing_over:
                self.world.reached("a leader hears no majority")
            for _, asker in self.puts:
                asker.send(Done(False, self.replica.leader, -1))
            self.puts = []
        elif end in self.ways:
            self.ways[end].hang_up(NETWORK_EXCEPTION)

    def leader_changed(self):
        pass

    def reply(self, netproc, token, code, body):
        assert code == NONE
        end, number = self.asked.pop(token)
        end.send(Answer(number, body))

    def event(self, level, event, **fields):
        self.say(f"{event} {fields}")
        assert not str(fields.get("cause", "")).startswith(CONTRADICTS), fields
        if event == "metadata-truncated":
            twice = self.parted == self.replica.epoch
            self.world.reached("logs part twice in an epoch" if twice else "logs part")
            self.parted = self.replica.epoch
            voters = self.quorum.electing
            if voters.at(fields["to"]) != voters.latest:
                self.world.reached("a change of voters is taken back")

    event_seldom = event

    # What is rare ---------------------------------------------------------------------------------

    def loads(self):
        """A life begins with what the disk has."""
        if self.log.start_offset > 0:
            self.world.reached("a start loads a snapshot")
            self.loaded_leading |= self.replica.leads
        if self.replica.role is Role.RESIGNED:
            self.world.reached("who led before its death resigns")

    def takes_a_snapshot(self, why):
        """The leader's is in the place of its log."""
        self.say(str(why))
        self.world.reached("a snapshot is fetched")
        self.loaded_leading |= self.replica.leads
        self.stop(power=False)

    def begins_epoch(self, target):
        """It tells that one that it leads."""
        now = self.replica.epoch, target
        if now in self.began:
            self.world.reached("BeginQuorumEpoch is sent again")
        self.began.add(now)

    # Messages -------------------------------------------------------------------------------------

    def received(self, end, message):
        if isinstance(message, Put):
            self.put(end, message)
        elif isinstance(message, Answer):
            if end in self.ways:
                self.ways[end].answered(message)
        else:
            self.tokens += 1
            self.asked[self.tokens] = end, message.number
            self.driver.served.serve(
                0, self.tokens, message.key, message.version, message.body, rights()
            )
        self.turn()

    # Clients --------------------------------------------------------------------------------------

    def put(self, end, message):
        if not self.quorum.active:
            end.send(Done(False, self.quorum.leadership.leader_id, -1))
            return
        offset = self.quorum.replayed_end
        self.quorum.append([recorded(message.name)], self.now_ms)
        self.puts.append((offset, end))

    def answer_puts(self):
        while self.puts and self.puts[0][0] < self.quorum.committed:
            offset, end = self.puts.pop(0)
            end.send(Done(True, self.number, offset))


def encoded(name):
    """As it stands in the log."""
    return encode(recorded(name), LEVEL)
