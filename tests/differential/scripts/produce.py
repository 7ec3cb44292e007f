"""Produce."""

from tests.differential.records import batch, spoiled
from tests.differential.registry import script


def one_partition(name, records, index=0):
    return [{"name": name, "partition_data": [{"index": index, "records": records}]}]


@script("Produce", versions=(3, 12))
def produce_by_name(s):
    topic = s.topic()

    def ask(step, records, name=topic, index=0, acks=-1):
        return s.ask(
            step, acks=acks, timeout=10_000, topic_data=one_partition(name, records, index)
        )

    ask("all", batch(b"value"))
    ask("leader", batch(b"value"), acks=1)
    ask("several records", batch(b"a", b"b", b"c"))
    ask("no records", b"")
    ask("wrong checksum", spoiled(batch(b"value")))
