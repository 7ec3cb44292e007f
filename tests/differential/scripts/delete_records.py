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
def delete_records_of_compacted(s):
    topic = s.topic(cleanup_policy="compact")
    s.ask("refused", timeout=10_000, topics=[
        {"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}])  # fmt: skip
