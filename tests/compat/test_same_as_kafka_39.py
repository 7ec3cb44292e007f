"""Versions that Apache Kafka 4 gave up: the same answers, field by field, as Apache Kafka 3.9, the
last one to serve them; and the same entries in every message set.

What is left out differs on purpose: where Kafka answers UNKNOWN_SERVER_ERROR, takes bytes for a
message that are none, or does not answer, the appliance refuses (docs/old-clients.md).
"""

import gzip
import struct
import zlib

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from appliance.wire import compression
from appliance.wire.batch_header import CODEC_MASK
from appliance.wire.compression import GZIP, LZ4, SNAPPY, ZSTD
from appliance.wire.message_set import mend_lz4
from appliance.wire.records import NewRecord, build_batch
from benchmarks.kafka import Kafka
from tests.broker_process import Broker
from tests.compat import old_clients
from tests.compat.old_requests import Peer, array, fetch, messages, produce, string
from tests.old_formats import APPEND_TIME, Plain, message, wrapper

TIME = 1_700_000_000_000
NOW = 1_750_000_000_000
TOPICS = {
    "plain": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact"},
    "gzip": {"compression.type": "gzip"},
    "opened": {"compression.type": "uncompressed"},
}
OTHERS = ("listed", "empty")


@pytest.fixture(scope="module")
def both(pytestconfig, tmp_path_factory):
    """Addresses by name: ours, kafka."""
    libs = old_clients.kafka39(pytestconfig)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_KAFKA_LIBS", str(libs))
        node = Kafka(tmp_path_factory.mktemp("kafka39") / "data", heap="400m")
        node.settings |= {"node.id": "1", "offsets.topic.num.partitions": "1"}
        with (
            node,
            Broker(
                tmp_path_factory.mktemp("ours") / "data", {"penstock.legacy.protocol": "true"}
            ) as ours,
        ):
            for bootstrap in (ours.bootstrap, node.bootstrap):
                admin = KafkaAdminClient(bootstrap_servers=bootstrap)
                admin.create_topics([
                    NewTopic(name, 1, 1, topic_configs=settings)
                    for name, settings in (TOPICS | {name: {} for name in OTHERS}).items()
                ])  # fmt: skip
                admin.close()
                host, port = bootstrap.split(":")
                with Peer((host, int(port))) as peer:
                    for name in (*TOPICS, *OTHERS):
                        while fetch(peer, 3, name, 0, wait_ms=1)["error"]:
                            pass
            yield {"ours": ("127.0.0.1", ours.port), "kafka": ("127.0.0.1", node.port)}


def one(number=0, time=TIME, key=b"k", value=b"v"):
    return Plain(number, time, key, value)


def entry(body, size=None):
    """One entry with this body, its sum right, and what its size field says."""
    framed = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(framed) if size is None else size) + framed


def wrapped(data, magic, codec=GZIP, offset=0, key=None):
    packed = gzip.compress(data) if codec == GZIP else compression.compress(codec, data)
    return message(Plain(offset, TIME, key, packed), magic, codec)


def sets_of(magic):
    """Message sets by name."""

    def some(*entries, attributes=0):
        return b"".join(message(each, magic, attributes) for each in entries)

    yield "plain", some(one(), one(1, key=None), one(2, value=None), one(3, key=b"", value=b""))
    yield "offsets of 0", some(one(), one(), one())
    yield "offsets below 0", some(one(-1), one(-5))
    for codec in (GZIP, SNAPPY, LZ4):
        yield (
            f"wrapper {codec}",
            wrapper([one(), one(1, TIME + 5), one(2, value=None)], magic, codec),
        )
        yield f"wrapper {codec}, offsets of 0", wrapped(some(one(), one()), magic, codec)
    yield "two wrappers", wrapped(some(one()), magic) * 2
    yield "a wrapper behind a message", some(one()) + wrapped(some(one()), magic)
    yield "a message behind a wrapper", wrapped(some(one()), magic) + some(one())
    yield "nested", wrapped(wrapped(some(one()), magic), magic)
    yield "the other format inside", wrapped(message(one(), 1 - magic), magic)
    yield "both formats", some(one()) + message(one(), 1 - magic)
    yield "wrong CRC", some(one())[:-1] + b"x"
    yield "wrong CRC inside", wrapped(some(one())[:-1] + b"x", magic)
    yield "cut off", some(one(), one(1))[:-3]
    yield "cut off inside", wrapped(some(one(), one(1))[:-1], magic)
    yield "nothing inside", wrapped(b"", magic)
    yield "null wrapper", message(Plain(0, TIME, None, None), magic, GZIP)
    yield "zstd", wrapped(some(one()), magic, ZSTD)
    yield "size too small", entry(b"", size=13) + b"0" * 40
    yield "size below 0", entry(b"", size=-1) + b"0" * 40
    yield "of append time", some(one(), attributes=APPEND_TIME)
    yield "wrapper of append time", wrapper([one()], magic, GZIP, TIME)
    yield "unknown attributes", some(one(), attributes=0x10) + some(one(), attributes=0x40)
    head = bytes((magic, 0)) + (struct.pack(">q", TIME) if magic else b"")
    yield "lengths below -1", entry(head + struct.pack(">ii", -2, -5))
    yield "too large", some(one(value=b"x" * 1_100_000))
    yield "too large together", some(*(one(n, value=b"x" * 300_000) for n in range(5)))
    yield "a wrapper with a key", wrapped(some(one(), one(1)), magic, offset=1, key=b"k")
    yield "offsets beyond the wrapper's", wrapped(some(one(5), one(9)), magic, offset=7)


def other_sets():
    yield "no time", message(one(time=-1), 1)
    yield "times up and down", b"".join(message(one(time=at), 1) for at in (TIME, -1, TIME - 9))
    yield "nothing", b""
    yield "sixteen zeros", b"\0" * 16
    yield "forty zeros", b"\0" * 40
    batch = build_batch([NewRecord(TIME, b"k", b"v"), NewRecord(TIME + 1, b"k", b"v")])
    yield "a batch", batch
    yield "a batch in gzip", build_batch([NewRecord(TIME, b"k", b"v")], codec=GZIP)
    yield "two batches", batch * 2
    yield "a batch behind a message", message(one(), 1) + batch
    yield "a message behind a batch", batch + message(one(), 1)
    yield "format 3", entry(bytes((3, 0)) + b"\xff" * 8)
    more = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    yield "of a transaction", build_batch([NewRecord(TIME, b"k", b"v")], **more)
    yield "control", build_batch([NewRecord(TIME, b"k", b"v")], control=True)


SETS = {
    **{f"{magic} {name}": data for magic in (0, 1) for name, data in sets_of(magic)},
    **dict(other_sets()),
}


def without_time(answer):
    """The answer, a time of today in it as a word."""
    stamped = answer.get("append_time", -1) > NOW
    return answer | {"append_time": "now"} if stamped else answer


@pytest.mark.parametrize("topic", TOPICS)
def test_sets_are_answered_and_told_as_kafka_does(both, topic):
    differing = {}
    for version in (0, 1, 2) if topic == "plain" else (2,):
        for name, data in SETS.items():
            answers = {}
            for where, address in both.items():
                with Peer(address) as peer:
                    answers[where] = without_time(produce(peer, version, topic, data))
            if answers["ours"] != answers["kafka"]:
                differing[version, name] = answers
    assert not differing
    for version in range(4):
        ours, kafka = (
            everything(address, version, topic, stamps=topic == "stamped")
            for address in both.values()
        )
        assert len(ours) > 30
        assert ours == kafka


def everything(address, version, topic, *, stamps):
    """Every entry of the partition as it is told, wrappers with what they open to."""
    found, offset, end = [], 0, 1
    with Peer(address) as peer:
        while offset < end:
            answer = fetch(peer, version, topic, offset)
            assert not answer["error"]
            end = answer["high_watermark"]
            some = messages(answer["set"])
            found += [opened(each, stamps=stamps) for each in some]
            offset = some[-1].offset + 1
    return found


def opened(each, *, stamps):
    codec, value = each.attributes & CODEC_MASK, each.value
    if stamps and each.magic:
        assert each.timestamp > NOW
        each = each._replace(timestamp="now")
    if not codec:
        return each
    if codec == LZ4 and not each.magic:
        assert mend_lz4(value) != value, "readers of format 0 expect the wrong checksum"
        value = mend_lz4(value)
    inside = messages(compression.decompress(codec, value))
    if stamps:
        inside = [one._replace(timestamp=None) for one in inside]
    return each._replace(value=inside)


@pytest.mark.parametrize("version", range(4))
def test_ends_and_errors_are_told_as_kafka_does(both, version):
    for topic, offset, partition in (
        ("plain", 10_000, 0),
        ("plain", -1, 0),
        ("plain", 0, 7),
        ("never", 0, 0),
    ):
        told = []
        for address in both.values():
            with Peer(address) as peer:
                told.append(fetch(peer, version, topic, offset, partition=partition, wait_ms=0))
        assert told[0] == told[1]


@pytest.mark.parametrize("version", range(3))
def test_acks_are_checked_as_kafka_does(both, version):
    for acks in (2, -2):
        told = []
        for address in both.values():
            with Peer(address) as peer:
                told.append(produce(peer, version, "plain", message(one(), 1), acks=acks))
        assert told[0] == told[1]


def listed(address, topic, *rows, replica=-1):
    """Answers of ListOffsets version 0. rows: partition, time, how many."""
    asked = array(string(topic) + array(*(struct.pack(">iqi", *row) for row in rows)))
    with Peer(address) as peer:
        answer = peer.ask(2, 0, struct.pack(">i", replica) + asked)
        told = answer.array(
            lambda: (
                answer.string(),
                answer.array(lambda: (*answer.take("ih"), answer.array(lambda: answer.take("q")))),
            )
        )
        answer.end()
        return told


@pytest.mark.parametrize("replica", [-1, -2])
def test_ends_of_a_log_are_listed_as_kafka_does(both, replica):
    for address in both.values():
        with Peer(address) as peer:
            for _ in range(3):
                assert not produce(peer, 2, "listed", message(one(), 1))["error"]
    rows = [
        (0, time, most) for time in (-1, -2, -3, 0, 4_000_000_000_000) for most in (0, 1, 2, 5)
    ] + [(9, -1, 1)]  # fmt: skip
    rows = [row for row in rows if row[1] != 0]  # by the time of files there, of records here
    for row in rows:
        ours, kafka = (listed(address, "listed", row, replica=replica) for address in both.values())
        assert ours == kafka, row
    ours, kafka = (listed(address, "empty", (0, -1, 5), (0, -2, 1)) for address in both.values())
    assert ours == kafka


def test_offsets_are_committed_as_kafka_does(both):
    told = []
    for address in both.values():
        with Peer(address) as peer:
            found = []
            while peer.ask(10, 0, string("g")).data[:2] != b"\0\0":
                pass  # its topic is being created
            for version, topic, partition in ((1, "plain", 0), (1, "plain", 9), (1, "never", 0)):
                row = struct.pack(">iqq", partition, 5, TIME) + string("words")
                body = string("g") + struct.pack(">i", -1) + string("")
                answer = peer.ask(8, version, body + array(string(topic) + array(row)))
                while answer.data[-2:] in (b"\0\x0e", b"\0\x0f", b"\0\x10"):  # it is loading
                    answer = peer.ask(8, version, body + array(string(topic) + array(row)))
                found.append(answer.data)
            told.append(found)
    assert told[0] == told[1]
