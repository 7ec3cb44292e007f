"""Produce."""

from tests.differential.records import NOW_MS, batch, spoiled
from tests.differential.registry import script

HOUR = 3_600_000


def data(s, topic, records, index=0):
    """One batch for one partition. topic: (name, id)."""
    named = {"topic_id": topic[1]} if s.version >= 13 else {"name": topic[0]}
    return [{**named, "partition_data": [{"index": index, "records": records}]}]


def both(s, name):
    """(name, id) of a topic that is there."""
    return name, s.topic_id(name)


def asker(s, topic):
    def ask(step, records, topic=topic, index=0, acks=-1, **values):
        return s.ask(step, acks=acks, timeout=10_000,
                     topic_data=data(s, topic, records, index), **values)  # fmt: skip

    return ask


@script("Produce", versions=(3, 13))
def produce(s):
    topic = both(s, s.topic())
    ask = asker(s, topic)
    ask("all", batch(b"value"))
    ask("leader", batch(b"value"), acks=1)
    ask("several records", batch(b"a", b"b", b"c"))
    ask("null", batch(None))
    ask("unknown partition", batch(b"value"), index=7)
    ask("unknown topic", batch(b"value"), topic=(s.name("unknown"), s.id("unknown")))
    ask("acks 2", batch(b"value"), acks=2)
    s.ask("nothing", acks=-1, timeout=10_000)
    silent = {"acks": 0, "timeout": 1000, "topic_data": data(s, topic, batch(b"value"))}
    s.main.send(0, s.version, silent, answered=False)
    ask("after acks 0", batch(b"value"))


@script("Produce", versions=(3, 13))
def produce_bad_records(s):
    topic = both(s, s.topic(max_message_bytes="1000"))
    ask = asker(s, topic)
    ask("wrong checksum", spoiled(batch(b"value")))
    ask("too large", batch(b"x" * 2000))
    ask("too late", batch(b"value", timestamp=NOW_MS + 2 * HOUR))
    ask("two batches", batch(b"a") + batch(b"b"))
    ask("magic 1", spoiled(batch(b"value"), 16))
    ask("count too small", batch(b"a", b"b", count=1))
    ask("count too large", batch(b"a", b"b", count=3))
    ask("control batch", batch(b"value", attributes=0x20))


@script("Produce", versions=(3, 13))
def produce_without_records(s):
    """Null instead of nothing is left out: Kafka never answers that."""
    topic = both(s, s.topic())
    asker(s, topic)("empty", b"")


@script("Produce", versions=(3, 13))
def produce_cut_records(s):
    topic = both(s, s.topic())
    asker(s, topic)("cut", batch(b"value")[:-3])


@script("Produce", versions=(3, 13))
def produce_to_compacted(s):
    """Every record without a key is named (KIP-467)."""
    topic = both(s, s.topic(cleanup_policy="compact"))
    ask = asker(s, topic)
    ask("one without key", batch(b"value"))
    ask("three without keys", batch(b"a", b"b", b"c"))


@script("Produce", versions=(3, 13))
def produce_with_append_time(s):
    topic = both(s, s.topic(message_timestamp_type="LogAppendTime"))
    ask = asker(s, topic)
    ask("good", batch(b"value"))
    ask("years ahead", batch(b"value", timestamp=NOW_MS + 9000 * HOUR))


@script("Produce", versions=(3, 13))
def produce_old_records(s):
    topic = both(s, s.topic(message_timestamp_before_max_ms="1000"))
    ask = asker(s, topic)
    ask("too old", batch(b"a", b"b", timestamp=NOW_MS - HOUR))


@script("Produce", versions=(3, 13))
def produce_in_sequence(s):
    topic = both(s, s.topic())
    ask = asker(s, topic)
    producer = s.until(lambda answer: answer["error_code"] == "NONE", "InitProducerId",
                       transaction_timeout=60_000, producer_id=-1,
                       producer_epoch=-1)["producer_id"]  # fmt: skip

    def numbered(sequence, epoch=0, count=1, who=producer):
        return batch(*[b"v"] * count, producer=(who, epoch, sequence))

    ask("first", numbered(0, count=2))
    ask("second", numbered(2))
    ask("second again", numbered(2))
    ask("first again", numbered(0, count=2))
    ask("a gap", numbered(9))
    ask("epoch 1 not from 0", numbered(5, 1))
    ask("epoch 1", numbered(0, 1))
    ask("epoch 0 again", numbered(3))
    for sequence in range(1, 8):
        ask(f"epoch 1, {sequence}", numbered(sequence, 1))
    ask("older than remembered", numbered(1, 1))
    ask("unknown producer in the middle", numbered(5, who=producer + 500_000))


@script("Produce", versions=(3, 13))
def produce_to_several(s):
    topic = s.topic(partitions=3)
    named = {"topic_id": s.topic_id(topic)} if s.version >= 13 else {"name": topic}
    rows = [{"index": index, "records": batch(b"v")} for index in (0, 1, 9)]
    s.ask("good and bad", acks=-1, timeout=10_000, topic_data=[{**named, "partition_data": rows}])


@script("Produce", versions=(3, 13))
def produce_without_replicas(s):
    topic = both(s, s.topic(min_insync_replicas="2"))
    ask = asker(s, topic)
    ask("all", batch(b"value"))
    ask("leader", batch(b"value"), acks=1)
