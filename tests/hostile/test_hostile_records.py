"""Record batches that lie: every one is refused with Kafka's error, and nothing of it is stored."""

import gzip
import time
from struct import pack, pack_into

import crc32c
import lz4.frame
import pytest
import zstandard
from hostile_client import Link, ask, produce

from benchmarks import batches, requests
from tests.broker_process import KAFKA

NONE, CORRUPT, INVALID_RECORD, TOO_LARGE = 0, 2, 87, 10
REFUSED = {CORRUPT, INVALID_RECORD, 43, 76, 32, 42, None}
if KAFKA:
    REFUSED |= {-1}  # what Kafka says when a codec or a varint throws; we promise a cause
NOW = int(time.time() * 1000)


def good(**changes):
    return batches.batch([b"one", b"two", b"three"], NOW, **changes)


def resealed(batch):
    """The CRC made right again after a change behind it."""
    changed = bytearray(batch)
    pack_into(">I", changed, 17, crc32c.crc32c(bytes(changed[21:])))
    return bytes(changed)


def end_of(port, topic="target"):
    """Log end offset."""
    answer = ask(port, requests.end_offset(topic, 0))
    return requests.END_FIELDS.unpack_from(answer, len(answer) - requests.END_FIELDS.size)[2]


@pytest.fixture(autouse=True)
def nothing_is_stored(port):
    before = end_of(port)
    yield
    assert end_of(port) == before


@pytest.mark.parametrize("count", [0, 1, 2, 4, 1000, 0x7FFFFFFF, -1, -(1 << 31)])
def test_a_lying_record_count(port, count):
    batch = bytearray(good())
    pack_into(">i", batch, 57, count)
    assert produce(port, resealed(batch)) in REFUSED


@pytest.mark.parametrize("delta", [0, 1, 3, 0x7FFFFFFF, -1])
def test_a_lying_last_offset_delta(port, delta):
    batch = bytearray(good())
    pack_into(">i", batch, 23, delta)
    assert produce(port, resealed(batch)) in REFUSED


def test_a_wrong_crc(port):
    batch = bytearray(good())
    batch[-1] ^= 1
    assert produce(port, bytes(batch)) == CORRUPT


@pytest.mark.parametrize("magic", [0, 1, 3, 127, 255])
def test_a_wrong_magic(port, magic):
    batch = bytearray(good())
    batch[16] = magic
    assert produce(port, bytes(batch)) in REFUSED


@pytest.mark.parametrize(
    "length", [0, 1, 48, -1, 0x7FFFFFFF, len(good()) - 12 + 1, len(good()) - 13]
)
def test_a_lying_batch_length(port, length):
    batch = bytearray(good())
    pack_into(">i", batch, 8, length)
    assert produce(port, bytes(batch)) in REFUSED


def test_two_batches_or_none_or_half_of_one(port):
    assert produce(port, good() + good()) in REFUSED
    assert produce(port, good()[:40]) in REFUSED
    assert produce(port, good()[:70]) in REFUSED
    assert produce(port, b"\0" * 61) in REFUSED


def test_a_whole_batch_and_a_few_bytes(port):
    """Kafka stores the batch and drops the rest; to refuse both is as good."""
    assert produce(port, good() + b"\0" * 7, "tailed") in REFUSED | {NONE}


def test_control_batches_are_not_for_clients(port):
    assert produce(port, good(attributes=0x20)) in REFUSED


def test_an_unknown_codec(port):
    for attributes in (5, 6, 7):
        assert produce(port, good(attributes=attributes)) in REFUSED


@pytest.mark.parametrize("attributes", [1, 2, 3, 4])
def test_compressed_rubbish(port, attributes):
    for rubbish in (b"", b"\0", b"rubbish" * 20, b"\xff" * 100, bytes(1000)):
        assert produce(port, good(attributes=attributes, payload=rubbish)) in REFUSED


def test_snappy_with_lying_lengths(port):
    java = b"\x82SNAPPY\0" + pack(">ii", 1, 1)
    for chunk in (pack(">i", 0x7FFFFFFF) + b"\0", pack(">i", -1), b"\xff\xff\xff\xff\x0f\0" * 3):
        assert produce(port, good(attributes=2, payload=java + chunk)) in REFUSED
        assert produce(port, good(attributes=2, payload=chunk)) in REFUSED


def bombs():
    """A gigabyte of zeros in each codec that can say so in little; as payload of one record's
    batch.
    """
    block, zeros = bytes(1 << 20), zstandard.ZstdCompressor(level=1).compressobj()
    zstd = b"".join(zeros.compress(block) for _ in range(1024)) + zeros.flush()
    packer = gzip.compress(bytes(64 << 20), 9)
    with lz4.frame.LZ4FrameCompressor() as frame:
        lz = frame.begin() + b"".join(frame.compress(block) for _ in range(128)) + frame.flush()
    return {1: packer, 3: lz, 4: zstd}


@pytest.mark.parametrize("topic", ["target", "compacted", "stamped"])
def test_compression_bombs(broker, port, topic):
    before = end_of(port, topic)
    for codec, payload in bombs().items():
        assert len(payload) < 1_000_000
        batch = batches.batch([b"x"], NOW, attributes=codec, payload=payload)
        assert produce(port, batch, topic) in REFUSED, codec
        assert broker.memory() < broker.limit
    assert end_of(port, topic) == before


def test_a_batch_over_the_limit(port):
    assert produce(port, batches.batch([b"x" * 1_048_588], NOW)) == TOO_LARGE


def test_records_that_overrun(port):
    """Varints in a record that point behind the record or the batch."""
    value = batches.record(0, b"abc")
    for at in range(len(value)):
        for lie in (b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\xff" * 10):
            payload = value[:at] + lie + value[at + 1 :]
            code = produce(port, batches.batch([b"x"], NOW, payload=payload))
            assert code in REFUSED, (at, lie)


def test_the_wrong_acks(port):
    for acks in (2, -2, 32767):
        answer = ask(port, requests.produce("target", 0, good(), acks, 4))
        shape = requests.produce_shape("target", 7)
        assert answer is None or shape.fields.unpack_from(answer, shape.at - 4)[0] == 21


def test_produce_without_an_answer_that_is_refused(port):
    """acks=0 has no answer to put an error in: Kafka closes the connection instead."""
    batch = bytearray(good())
    batch[-1] ^= 1
    with Link(port) as link:
        link.send(requests.produce("target", 0, bytes(batch), 0, 4))
        assert link.closed_by_peer()
