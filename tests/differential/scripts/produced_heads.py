"""Produce: batches whose head does not say what their records say, and what the log makes of it."""

import gzip
from struct import pack

import crc32c

from benchmarks.batches import batch as built
from benchmarks.batches import varint
from tests.differential.records import NOW_MS, batch
from tests.differential.registry import script
from tests.differential.scripts.fetch import Fetcher

HOUR = 3_600_000
NONE, GZIP, ZSTD, APPEND_TIME = 0, 1, 4, 8
EMPTY_ZSTD = bytes.fromhex("28b52ffd0000010000")


def record(time_delta, offset_delta, value=b"v", key=b"k"):
    """One record without headers."""
    fields = varint(time_delta) + varint(offset_delta)
    body = b"\0" + fields + varint(len(key)) + key + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def headed(*records, base=NOW_MS, newest=NOW_MS, attributes=NONE):
    """A batch of (time delta, offset delta) with these timestamps in its head."""
    payload = b"".join(record(*one) for one in records)
    if attributes & GZIP:
        payload = gzip.compress(payload, mtime=0)
    data = bytearray(built([], base, attributes=attributes, count=len(records), payload=payload))
    data[35:43] = pack(">q", newest)
    return summed(data)


def summed(data):
    """With the checksum of what it holds now."""
    data[17:21] = pack(">I", crc32c.crc32c(bytes(data[21:])))
    return bytes(data)


def ask(s, step, topic, records, api="Produce"):
    named = {"topic_id": s.topic_id(topic)} if s.version >= 13 else {"name": topic}
    rows = [{"index": 0, "records": one} for one in records]
    return s.ask(step, acks=-1, timeout=10_000, topic_data=[{**named, "partition_data": rows}])


def found(s, step, topic, timestamp):
    row = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    s.ask(
        step, "ListOffsets", version=7, replica_id=-1, topics=[{"name": topic, "partitions": [row]}]
    )


def stored(s, step, topic):
    """The bytes as a consumer gets them."""
    link = Fetcher(s)
    row = link.partition(0)
    s.ask(
        step,
        "Fetch",
        version=12,
        replica_id=-1,
        max_wait=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[{"topic": topic, "partitions": [row]}],
        session_id=0,
        session_epoch=-1,
    )


def heads(attributes):
    """(name, batch): heads that their records belie."""
    several = ((0, 0), (5, 1), (2, 2))

    def one(*records, **times):
        return headed(*records, attributes=attributes, **times)

    yield "no newest time", one(*several, newest=-1)
    yield "no times at all", one((0, 0), (0, 1), base=-1, newest=-1)
    yield "newest of first", one(*several)
    yield "newest of last", one(*several, newest=NOW_MS + 2)
    yield "last is newer", one((0, 0), (5, 1), newest=NOW_MS + 1)
    yield "newest before base", one((0, 0), newest=NOW_MS - HOUR)
    yield "newest too new", one(*several, newest=NOW_MS + 1000)
    yield "first is not base", one((3, 0), (1, 1))
    yield "before base", one((0, 0), (-7, 1))


@script("Produce", versions=(9, 9))
def heads_belied(s):
    for codec, attributes in (("plain", NONE), ("gzip", GZIP)):
        for name, data in heads(attributes):
            topic = s.topic(f"{codec} {name}".replace(" ", "-"))
            step = f"{codec} {name}"
            ask(s, step, topic, [data])
            if codec == "plain":
                stored(s, f"{step}, stored", topic)
            found(s, f"{step}, max", topic, -3)
            for delta in (-HOUR, 0, 1, 3, 5, 6):
                found(s, f"{step}, from {delta}", topic, NOW_MS + delta)


@script("Produce", versions=(9, 9))
def heads_out_of_bounds(s):
    """message.timestamp.before.max.ms and .after.max.ms are held against every record."""
    topic = s.topic(message_timestamp_before_max_ms=str(HOUR))
    for codec, attributes in (("plain", NONE), ("gzip", GZIP)):
        for name, records, times in (
            ("last too new, head silent", ((0, 0), (2 * HOUR, 1)), {"newest": -1}),
            ("last too new, head lies", ((0, 0), (2 * HOUR, 1)), {}),
            ("last too old", ((0, 0), (-2 * HOUR, 1)), {}),
            ("first too old, head silent", ((0, 0),), {"base": NOW_MS - 2 * HOUR, "newest": -1}),
            ("head too new", ((0, 0),), {"newest": NOW_MS + 2 * HOUR}),
            ("head too old", ((2 * HOUR, 0),), {"base": NOW_MS - 2 * HOUR}),
            ("base too old", ((HOUR, 0),), {"base": NOW_MS - 2 * HOUR}),
        ):
            ask(s, f"{codec} {name}", topic, [headed(*records, attributes=attributes, **times)])


@script("Produce", versions=(9, 9))
def heads_with_append_time(s):
    topic = s.topic()
    ask(s, "bit, plain", topic, [headed((0, 0), attributes=APPEND_TIME)])
    ask(s, "bit, gzip", topic, [headed((0, 0), attributes=APPEND_TIME | GZIP)])
    ask(s, "bit, several", topic, [headed((0, 0), (5, 1), attributes=APPEND_TIME)])
    ask(s, "bit, no time", topic, [headed((0, 0), attributes=APPEND_TIME, newest=-1)])
    stored(s, "bit, stored", topic)
    stamped = s.topic("stamped", message_timestamp_type="LogAppendTime")
    ask(s, "bit, stamped", stamped, [headed((0, 0), attributes=APPEND_TIME)])
    ask(s, "no newest time, stamped", stamped, [headed((0, 0), (5, 1), newest=-1)])
    ask(s, "years ahead, stamped", stamped, [headed((9000 * HOUR, 0), newest=-1)])


@script("Produce", versions=(9, 9))
def inner_offsets(s):
    for name, deltas in (("one far", (1000,)), ("last far", (0, 1000)), ("first far", (7, 1)),
                         ("twice", (0, 0)), ("backwards", (1, 0)), ("negative", (-1, 0)),
                         ("middle", (0, 2, 2))):  # fmt: skip
        for codec, attributes in (("plain", NONE), ("gzip", GZIP)):
            topic = s.topic(f"{codec}-{name}".replace(" ", "-"))
            records = [(0, delta) for delta in deltas]
            ask(s, f"{codec} {name}", topic, [headed(*records, attributes=attributes)])
            found(s, f"{codec} {name}, end", topic, -1)


@script("Produce", versions=(3, 13))
def zstd_before_its_version(s):
    topic = s.topic()
    data = built([], NOW_MS, attributes=ZSTD, count=1, payload=EMPTY_ZSTD)
    ask(s, "no records in zstd", topic, [data])
    frame = record(0, 0)
    raw = bytes.fromhex("28b52ffd20") + bytes([len(frame)])
    raw += (len(frame) << 3 | 1).to_bytes(3, "little") + frame
    ask(s, "zstd", topic, [built([], NOW_MS, attributes=ZSTD, count=1, payload=raw)])


@script("Produce", versions=(3, 13))
def produce_twice_to_one(s):
    topic = s.topic()
    ask(s, "twice", topic, [batch(b"first"), batch(b"second", b"third")])
    found(s, "end", topic, -1)
