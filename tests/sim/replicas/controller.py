"""The active controller of a simulated cluster: today's decisions over today's image. It never
dies, but it may become another one, which knows nothing but what is agreed: of the records that it
has decided on it may lose those that are not, and nobody hears of them."""

from collections import deque
from contextlib import suppress
from itertools import count

from sim.node import Node
from sim.replicas.talk import (
    Alter,
    Altered,
    Assign,
    Beat,
    Beaten,
    Follow,
    Records,
    Register,
    Registered,
    directory,
)

from appliance.base.errors import PeerError
from appliance.config.broker import BrokerConfig
from appliance.controller import broker_states
from appliance.controller.alter_partition import NewIsr, alter_partitions
from appliance.controller.broker_registration import Registering, register_broker
from appliance.controller.broker_states import Heartbeat
from appliance.controller.decision import Situation
from appliance.controller.directories import Assigned, assign_replicas
from appliance.controller.electorate import ELR_FEATURE
from appliance.controller.features import FRESH, SUPPORTED
from appliance.controller.heartbeats import Heartbeats
from appliance.controller.reassignments import alter_reassignments
from appliance.controller.registration import bootstrap_records
from appliance.controller.topics import NewTopic, create_topics
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import Endpoint, Feature
from appliance.wire import kraft_records as kraft

CLUSTER = "cluster"
NUMBER = 100
SESSION_MS = 60
LONG_POLL_MS = 20
EVIDENCE_MS = 15
TOPIC = "t"


def doors(incarnation):
    """Where a life of a broker listens: every second one where the one before did, which is
    registered at once; the others wait for its session."""
    port = 9092 + incarnation[-1] // 2 % 2
    return (Endpoint(name="PLAINTEXT", host="h", port=port, security_protocol=0),)


FEATURES = tuple(
    Feature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in SUPPORTED.items()
)


class Controller(Node):
    """replicas: of each partition of the topic, which is there as soon as all brokers are.
    log: the metadata records that are agreed, the first one at offset 0; agreed: what they say.
    tail: the decisions behind them, which `image` has, too; end: behind their records.
    answers: what is told when all below an offset is agreed: (offset, end of a connection, it)."""

    def __init__(self, world, brokers, replicas, least_in_sync):
        super().__init__(world, "controller")
        self.brokers = brokers
        self.replicas = replicas
        self.log, self.tail, self.answers = [], [], deque()
        self.end = 0
        self.agreed = MetadataImage()
        self.agreed.applied_offset = -1
        self.image = self.agreed.copy()
        self.image.applied_offset = -1
        self.numbers = count(1)
        settings = {"node.id": str(NUMBER), "min.insync.replicas": str(least_in_sync)}
        config = BrokerConfig.of(settings)
        self.situation = Situation(self.image, config, NUMBER, b"d" * 16, self.new_id, 10**6)
        self.waiting = {}
        self.brokers_of = {}  # end of a connection → whose it is
        self.write(bootstrap_records())
        if not FRESH.get(ELR_FEATURE):
            self.write([kraft.FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)])
        self.agree(len(self.tail))

    def new_id(self):
        return next(self.numbers).to_bytes(16, "big")

    def begin(self):
        self.becomes_another()
        self.look()

    def becomes_another(self):
        """Another one leads: what no record says that is agreed is not known any more."""
        self.agree(self.world.rng.randint(0, len(self.tail)))
        if self.tail:
            self.world.reached("decisions are lost")
        self.say(f"is another one, {len(self.tail)} decisions are lost")
        self.tail.clear()
        self.answers.clear()
        self.image = self.agreed.copy()
        self.image.applied_offset = self.agreed.applied_offset
        self.end = len(self.log)
        self.situation.image = self.image
        self.heartbeats = Heartbeats(self.image, -1, SESSION_MS, self.now_ms)

    @property
    def now_ms(self):
        return self.world.clock.now_ns // 1_000_000

    def partition(self, index):
        """As it is agreed."""
        return self.agreed.partition(TOPIC, index)

    def write(self, records):
        """They are decided, and are agreed together."""
        if not records:
            return
        for record in records:
            self.image.apply(self.end, record)
            self.end += 1
        self.tail.append(records)
        self.after(self.world.rng.expovariate(1 / 2), self.agree, len(self.tail))

    def agree(self, count):
        """So many decisions more, at most, are agreed."""
        for records in self.tail[:count]:
            for record in records:
                changes = isinstance(record, kraft.PartitionChangeRecord)
                before = self.partition(record.partition_id) if changes else None
                self.agreed.apply(len(self.log), record)
                self.log.append(record)
                if changes:
                    self.say_partition(record.partition_id)
                    self.note(before, self.partition(record.partition_id))
        del self.tail[:count]
        while self.answers and self.answers[0][0] <= len(self.log):
            _, end, answer = self.answers.popleft()
            end.send(answer)
        self.wake()

    def tell(self, end, answer):
        """As soon as all that it follows from is agreed."""
        self.answers.append((self.end, end, answer))
        self.agree(0)

    def say_partition(self, index):
        self.world.moved = True
        found = self.partition(index)
        self.say(
            f"{index}: leader {found.leader} in {found.leader_epoch}.{found.partition_epoch},"
            f" in sync {found.isr}, eligible {found.eligible_leader_replicas}"
        )

    def note(self, before, after):
        """What became of a partition, where that is rare."""
        reached = self.world.reached
        if not after.isr:
            reached("nobody is in sync")
        if after.eligible_leader_replicas:
            reached("somebody is eligible")
        if before.adding_replicas and not after.adding_replicas:
            reached("a reassignment ends")
        if not before.isr and after.isr:
            known = after.leader in before.eligible_leader_replicas
            how = "an eligible one" if known else "the last known leader"
            reached(f"{how} is elected")

    # Time -----------------------------------------------------------------------------------------

    def look(self):
        while records := broker_states.stale(self.situation, self.heartbeats, self.now_ms):
            self.write(records)
        self.create()
        self.wake()
        self.after(5, self.look)

    def create(self):
        brokers = self.image.brokers.values()
        used = [broker for broker in brokers if not broker.fenced]
        if TOPIC not in self.image.topics_by_name and len(used) == len(self.brokers):
            topic = NewTopic(TOPIC, assignments=list(enumerate(self.replicas)))
            records, [(_, result, _)] = create_topics(self.situation, [topic])
            assert result.code == 0, result
            self.write(records)

    # Requests -------------------------------------------------------------------------------------

    def received(self, end, message):
        if isinstance(message, Follow):
            self.follow(end, message)
        elif isinstance(message, Register):
            self.tell(end, Registered(self.register(message)))
        elif isinstance(message, Beat):
            self.brokers_of[end] = message.broker
            self.tell(end, self.beat(message))
        elif isinstance(message, Alter):
            self.tell(end, Altered(message.key, message.partition_epoch, self.alter(message)))
        elif isinstance(message, Assign):
            self.assign(message)

    def register(self, message):
        asked = Registering(
            broker_id=message.broker,
            cluster_id=CLUSTER,
            incarnation_id=message.incarnation,
            endpoints=doors(message.incarnation),
            features=FEATURES,
            rack=None,
            log_dirs=(directory(message.broker, message.disk),),
            previous_epoch=message.previous_epoch,
        )
        if message.previous_epoch < 0 and message.broker in self.image.brokers:
            self.world.reached("who registers lost what it had")
        try:
            records, epoch = register_broker(
                self.situation, self.heartbeats, asked, CLUSTER, self.now_ms
            )
        except PeerError as refused:
            self.say(f"refuses {message.broker}: {refused.code}")
            return -1
        self.write(records)
        return epoch

    def beat(self, message):
        asked = Heartbeat(
            broker_id=message.broker,
            epoch=message.epoch,
            offset=message.offset,
            want_shut_down=message.want_shut_down,
        )
        try:
            records, answer = broker_states.heartbeat(
                self.situation, self.heartbeats, asked, self.now_ms
            )
        except PeerError:
            return Beaten(True, False)
        self.write(records)
        return Beaten(False, answer.should_shut_down)

    def alter(self, message):
        """The error code of the partition."""
        topic_id, index = message.key
        asked = NewIsr(topic_id, index, message.leader_epoch, message.partition_epoch, message.isr)
        try:
            records, (result,) = alter_partitions(
                self.situation, message.broker, message.broker_epoch, [asked]
            )
        except PeerError as refused:
            return refused.code
        self.write(records)
        if result.code:
            self.world.reached("a change of the ISR is refused")
        return result.code

    def assign(self, message):
        """Where replicas are."""
        where = directory(message.broker, message.disk)
        asked = [Assigned(where, *key) for key in message.keys]
        with suppress(PeerError):  # it registers again, and says so again
            records, _ = assign_replicas(self.situation, message.broker, message.epoch, asked)
            self.write(records)

    def reassign(self, index, replicas):
        """Somebody wants the replicas of a partition there."""
        wanted = [(TOPIC, [(index, replicas)])]
        records, _ = alter_reassignments(self.situation, wanted, may_change_factor=True)
        self.say(f"{index}: to be on {replicas}")
        self.write(records)

    # The metadata log -----------------------------------------------------------------------------

    def follow(self, end, message):
        self.waiting[end] = message.offset
        self.after(LONG_POLL_MS, self.wake_one, end, message.offset)

    def wake(self):
        for end, offset in list(self.waiting.items()):
            if offset < len(self.log):
                self.wake_one(end, offset)

    def wake_one(self, end, offset):
        if self.waiting.get(end) == offset:
            del self.waiting[end]
            end.send(Records(offset, len(self.log)))

    def lost(self, end):
        """A closed connection is evidence that its broker is gone."""
        self.waiting.pop(end, None)
        if (broker := self.brokers_of.pop(end, None)) is not None:
            self.heartbeats.lost(broker, self.now_ms, EVIDENCE_MS)
