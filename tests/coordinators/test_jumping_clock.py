"""A wall clock that jumps, either way, ends no session, no rebalance and no transaction: what is
waited for goes by level time, what is stored by the wall clock."""

import pytest

from appliance.base.level import LevelTime
from appliance.config.broker import BrokerConfig
from appliance.coordinators.groups.kind import GROUPS
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.kind import CoordinatorPartition, Lent
from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft
from appliance.wire.build import build
from appliance.wire.messages import decode_request, encode_request, request_type
from tests.callers import rights

NOW_MS, HOUR_MS, SESSION_MS = 1_700_000_000_000, 3_600_000, 30_000
JUMPS = [-24 * HOUR_MS, -40_000, 40_000, 24 * HOUR_MS]
TOPIC = b"t" * 16


class Life:
    """A shard, and the clocks of its process: the wall clock is set while time goes on."""

    def __init__(self, kind):
        self.now_ns, self.wall_ms, self.time = 5, NOW_MS, LevelTime()
        self.image = MetadataImage()
        self.image.apply(1, kraft.TopicRecord(name="t", topic_id=TOPIC))
        self.image.apply(2, kraft.PartitionRecord(
            partition_id=0, topic_id=TOPIC, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
            partition_epoch=0, directories=(b"d" * 16,),
        ))  # fmt: skip
        self.image.apply(3, kraft.FeatureLevelRecord(name="group.version", feature_level=1))
        self.kind, self.log = kind, []
        self.begin()

    def begin(self):
        """Another process, which replays what was written."""
        self.time = LevelTime()
        self.time.read_clocks(self.now_ns, self.wall_ms)
        lent = Lent(lambda: bytes(16), lambda: 1000, time=self.time)
        config = BrokerConfig.of({"group.initial.rebalance.delay.ms": "0"})
        self.shard = self.kind.shard(CoordinatorPartition(0, 1, 0), config, self.image, lent)
        for offset, (key, value) in enumerate(self.log):
            self.shard.replay(key, value, offset)
        self.took(self.shard.activate(self.level))

    @property
    def level(self):
        return self.time.of(self.wall_ms)

    def took(self, outcome):
        self.log += outcome.records
        return outcome

    def goes_on(self, ms, jump_ms=0):
        """So long, and the clock is set; what was written by then."""
        self.now_ns += ms * 1_000_000
        self.wall_ms += ms + jump_ms
        self.time.read_clocks(self.now_ns, self.wall_ms)
        due = self.shard.next_deadline_ms <= self.level
        return self.took(self.shard.tick(self.level)).records if due else []

    def ask(self, key, version, **fields):
        message = encode_request(build(request_type(key, version), fields))
        call = Call(key, version, 1, rights())
        outcome = self.shard.handle(call, decode_request(key, version, message), self.level)
        self.took(outcome)
        return outcome.responses[0][1] if outcome.responses else {}

    def join(self):
        told = self.ask(
            68, 1, group_id="g", member_id="m" * 22, member_epoch=0, instance_id=None,
            rack_id=None, rebalance_timeout=60_000, subscribed_topic_names=["t"],
            subscribed_topic_regex=None, server_assignor=None, topic_partitions=[],
        )  # fmt: skip
        assert told["error_code"] == 0
        return told

    def members(self):
        group = self.shard.state.groups.get("g")
        return 0 if group is None else group.size()

    def begin_transaction(self, timeout_ms):
        first = self.ask(22, 4, transactional_id="x", transaction_timeout=timeout_ms,
                         producer_id=-1, producer_epoch=-1)  # fmt: skip
        self.ask(24, 3, v3_and_below_transactional_id="x",
                 v3_and_below_producer_id=first["producer_id"],
                 v3_and_below_producer_epoch=first["producer_epoch"],
                 v3_and_below_topics=[{"name": "t", "partitions": [0]}])  # fmt: skip
        assert self.state == "Ongoing"

    @property
    def state(self):
        told = self.ask(65, 0, transactional_ids=["x"])
        return told["transaction_states"][0]["transaction_state"]


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_session_is_as_long_as_it_was_to_be(jump_ms):
    life = Life(GROUPS)
    life.join()
    session = BrokerConfig.of({}).int("group.consumer.session.timeout.ms")
    life.goes_on(session // 2, jump_ms)
    life.goes_on(session // 4)
    assert life.members() == 1
    for _ in range(10):
        life.goes_on(session // 10)
    assert life.members() == 0, "and no longer"


@pytest.mark.parametrize("jump_ms", JUMPS)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_transaction_may_last_as_long_as_it_was_to(jump_ms, restarts):
    life = Life(TRANSACTIONS)
    life.begin_transaction(60_000)
    if restarts:
        life.goes_on(10_000)
        life.begin()
    life.goes_on(20_000, jump_ms)
    life.goes_on(20_000)
    assert life.state == "Ongoing"
    life.goes_on(40_000)
    assert life.state == "PrepareAbort", "and no longer"


def test_what_is_stored_has_the_time_of_the_wall():
    life = Life(TRANSACTIONS)
    life.goes_on(1000, HOUR_MS)
    life.begin_transaction(60_000)
    told = life.ask(65, 0, transactional_ids=["x"])["transaction_states"][0]
    assert told["transaction_start_time"] == life.wall_ms == NOW_MS + 1000 + HOUR_MS


def test_one_that_began_in_a_future_that_was_wrong_lasts_no_longer_than_it_may():
    life = Life(TRANSACTIONS)
    life.goes_on(1000, 24 * HOUR_MS)
    life.begin_transaction(60_000)
    life.wall_ms -= 24 * HOUR_MS  # the clock is set right while nobody serves
    life.begin()
    life.goes_on(59_000)
    assert life.state == "Ongoing"
    life.goes_on(2_000)
    assert life.state == "PrepareAbort"
