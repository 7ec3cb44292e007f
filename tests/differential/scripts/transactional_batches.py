"""Produce: requests for several partitions, some of them in the transaction and some not, and
batches that come without what they need."""

from tests.differential.records import batch, spoiled
from tests.differential.registry import script
from tests.differential.transactions import add, end, id_of, moved, writer, written


def asker(s, topic, who):
    """Asks with batches by partition, as the writer `who` or another id."""
    named = {"topic_id": s.topic_id(topic)} if s.version >= 13 else {"name": topic}

    def ask(step, records, name=who[0]):
        data = [{"index": index, "records": one} for index, one in records.items()]
        s.ask(step, acks=-1, timeout=10_000, transactional_id=name,
              topic_data=[{**named, "partition_data": data}])  # fmt: skip

    return ask


@script("Produce", versions=(10, 13))
def produce_beside_a_transaction(s):
    one, topic = writer(s), s.topic(partitions=3)
    ask = asker(s, topic, one)
    add(s, one, topic, 0)
    ask("what was not added", {1: written(one, b"v")})
    ask("beside what was", {0: written(one, b"v"), 2: written(one, b"v")})
    ask("unknown partition", {7: written(one, b"v")})
    ask("unknown partition beside", {7: written(one, b"v"), 0: written(one, b"v", sequence=1)})
    ask("plain batch beside", {0: written(one, b"v", sequence=2), 1: batch(b"plain")})
    end(s, one)


@script("Produce", versions=(10, 13))
def produce_with_a_wrong_transaction(s):
    one, topic = writer(s), s.topic(partitions=2)
    ask = asker(s, topic, one)
    add(s, one, topic, 0, 1)
    ask("another transaction", {0: written(one, b"v")}, name=writer(s, id_of(s, "other"))[0])
    both = {0: written(one, b"v"), 1: batch(b"plain")}
    ask("no id, with a plain batch", both, name=None)
    ask("two producers", {0: written(one, b"v"), 1: written(moved(one, epoch=1), b"v")})
    ask("another producer without a transaction",
        {1: written(moved(one, number=700_000), b"v", attributes=0)})  # fmt: skip
    ask("wrong checksum", {1: spoiled(written(one, b"v"))})
    ask("not the first", {0: written(one, b"v", sequence=7)})
    ask("before it", {0: written(one, b"v", sequence=5)})
    end(s, one)
