"""A clock that jumps ahead takes neither committed offsets nor transactional ids away before the
jump is believed; without doubt they go when they are due."""

import pytest

from appliance.base.retention_clock import DOUBTED_NS, RetentionClock
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

NOW_MS, YEARS_MS, DAY_MS = 1_700_000_000_000, 315_360_000_000, 86_400_000
SECOND_NS = 1_000_000_000
ROW = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1,
       "committed_metadata": ""}  # fmt: skip
COMMIT = 8, 9, {
    "group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "",
    "group_instance_id": None, "topics": [{"name": "t", "partitions": [ROW]}],
}  # fmt: skip
INIT = 22, 4, {"transactional_id": "x", "transaction_timeout": 60_000, "producer_id": -1,
               "producer_epoch": -1}  # fmt: skip


class Life:
    """A shard with one thing in it that gets old, and its process, whose clock jumps."""

    def __init__(self, kind, asked):
        self.now_ns, self.now_ms = 1, NOW_MS
        self.time = RetentionClock()
        lent = Lent(lambda: bytes(16), lambda: 1000, lambda ms: self.time.at(self.now_ns, ms))
        config = BrokerConfig.of({"offsets.retention.minutes": "10080"})
        image = MetadataImage()
        image.apply(1, kraft.TopicRecord(name="t", topic_id=b"t" * 16))
        image.apply(2, kraft.PartitionRecord(
            partition_id=0, topic_id=b"t" * 16, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
            partition_epoch=0, directories=(b"d" * 16,),
        ))  # fmt: skip
        self.shard = kind.shard(CoordinatorPartition(0, 1, 0), config, image, lent)
        self.shard.activate(NOW_MS)
        key, version, fields = asked
        message = encode_request(build(request_type(key, version), fields))
        call = Call(key, version, 1, rights())
        outcome = self.shard.handle(call, decode_request(key, version, message), NOW_MS)
        assert outcome.records

    def lives(self, real_ms, jump_ms=0):
        """(ms, its tombstones) over this time, by a look each minute as the process has."""
        taken = []
        for _ in range(real_ms // 60_000):
            self.now_ns += 60 * SECOND_NS
            self.now_ms += 60_000 + jump_ms
            jump_ms = 0
            self.time.at(self.now_ns, self.now_ms)
            if self.shard.next_deadline_ms <= self.now_ms:
                records = self.shard.tick(self.now_ms).records
                taken += [key for key, value in records if value is None]
        return taken


@pytest.mark.parametrize(("kind", "asked"), [(GROUPS, COMMIT), (TRANSACTIONS, INIT)])
def test_a_jump_takes_nothing_before_it_is_believed(kind, asked):
    life = Life(kind, asked)
    assert not life.lives(DAY_MS)
    almost = DOUBTED_NS // 1_000_000 - 60_000
    assert not life.lives(almost, YEARS_MS)
    assert life.lives(3_600_000), "it has lasted for an hour"


@pytest.mark.parametrize(("kind", "asked"), [(GROUPS, COMMIT), (TRANSACTIONS, INIT)])
def test_what_is_due_goes(kind, asked):
    life = Life(kind, asked)
    assert not life.lives(7 * DAY_MS - 60_000)
    assert life.lives(3_600_000)
