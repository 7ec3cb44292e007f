"""ListOffsets."""

from tests.differential.records import NOW_MS, batch
from tests.differential.registry import script

SPECIAL = {"latest": -1, "earliest": -2, "max timestamp": -3, "earliest local": -4,
           "latest tiered": -5, "earliest pending": -6}  # fmt: skip


def ask(s, step, topic, timestamp, index=0, epoch=-1, **values):
    row = {"partition_index": index, "timestamp": timestamp, "current_leader_epoch": epoch}
    return s.ask(step, replica_id=-1, topics=[{"name": topic, "partitions": [row]}], **values)


@script("ListOffsets")
def list_offsets(s):
    topic = s.topic(partitions=2)
    s.produce(topic, batch(b"a", b"b", timestamp=NOW_MS - 5000))
    s.produce(topic, batch(b"c", timestamp=NOW_MS - 3000))
    s.produce(topic, batch(b"d", timestamp=NOW_MS - 4000))
    for step, timestamp in SPECIAL.items():
        ask(s, step, topic, timestamp)
        ask(s, step + " of empty", topic, timestamp, index=1)
    for step, timestamp in (("beginning", 0), ("first", NOW_MS - 5000), ("between", NOW_MS - 4500),
                            ("second", NOW_MS - 3500), ("end", NOW_MS), ("odd", -7)):  # fmt: skip
        ask(s, step, topic, timestamp)
    ask(s, "unknown partition", topic, -1, index=7)
    ask(s, "unknown topic", s.name("unknown"), -1)
    ask(s, "committed", topic, -1, isolation_level=1)
    if s.version >= 4:
        ask(s, "known epoch", topic, -1, epoch=0)
        ask(s, "future epoch", topic, -1, epoch=5)
    s.ask("nothing", replica_id=-1)
    rows = [
        {"partition_index": 0, "timestamp": one, "current_leader_epoch": -1} for one in (-1, -2)
    ]
    s.ask("twice", replica_id=-1, topics=[{"name": topic, "partitions": rows}])
    for who, node in (("a replica", 2), ("nobody", -2), ("who is unknown", -7)):
        s.ask(f"by {who}", replica_id=node, topics=[{"name": topic, "partitions": rows[:1]}])
    s.call("DeleteRecords", timeout=10_000, topics=[
        {"name": topic, "partitions": [{"partition_index": 0, "offset": 2}]}])  # fmt: skip
    ask(s, "earliest after deletion", topic, -2)
    ask(s, "beginning after deletion", topic, 0)


@script("ListOffsets")
def list_offsets_with_append_time(s):
    topic = s.topic(message_timestamp_type="LogAppendTime")
    s.produce(topic, batch(b"a", b"b"))
    ask(s, "max timestamp", topic, -3)
    ask(s, "beginning", topic, 0)
