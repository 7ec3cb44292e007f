"""DeleteRecords."""

from tests.differential.records import batch
from tests.differential.registry import script


def ask(s, step, topic, offset, index=0):
    rows = [{"partition_index": index, "offset": offset}]
    return s.ask(step, timeout=10_000, topics=[{"name": topic, "partitions": rows}])


@script("DeleteRecords")
def delete_records(s):
    topic = s.topic(partitions=2)
    for _ in range(4):
        s.produce(topic, batch(b"value"))
    ask(s, "to 2", topic, 2)
    ask(s, "to 1", topic, 1)
    ask(s, "behind the end", topic, 9)
    ask(s, "negative", topic, -2)
    ask(s, "to the end", topic, -1)
    ask(s, "to the end again", topic, -1)
    ask(s, "of the empty", topic, -1, index=1)
    ask(s, "unknown partition", topic, 0, index=7)
    ask(s, "unknown topic", s.name("unknown"), 0)
    s.ask("nothing", timeout=10_000)


@script("DeleteRecords")
def delete_records_twice(s):
    """A partition that is named twice, in one topic and in two of the same name."""
    topic = s.topic(partitions=2)
    for _ in range(4):
        s.produce(topic, batch(b"value"))

    def rows(*offsets):
        return [{"partition_index": 0, "offset": offset} for offset in offsets]

    def start(step):
        s.ask(step, "ListOffsets", replica_id=-1, topics=[{"name": topic, "partitions": [
            {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -2}]}])  # fmt: skip

    s.ask("the later one is higher", timeout=10_000,
          topics=[{"name": topic, "partitions": rows(1, 2)}])  # fmt: skip
    start("start after the higher one")
    s.ask("the later one is lower", timeout=10_000,
          topics=[{"name": topic, "partitions": rows(4, 3)}])  # fmt: skip
    start("start after the lower one")
    two = [{"name": topic, "partitions": rows(offset)} for offset in (4, 9)]
    s.ask("two topics", timeout=10_000, topics=two)
    start("start after two topics")


@script("DeleteRecords")
def delete_records_of_compacted(s):
    topic = s.topic(cleanup_policy="compact")
    s.ask("refused", timeout=10_000, topics=[
        {"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}])  # fmt: skip
