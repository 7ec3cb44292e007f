"""Record batches: Kafka's own bytes are taken, what is not one whole batch is refused."""

import importlib
import random
import struct

import pytest
from crc32c import crc32c
from golden_lines import golden
from hypothesis import given
from hypothesis import strategies as st

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.log_config import LogConfig
from appliance.wire import compression
from appliance.wire.batch import (
    RECORDS_MAX,
    BatchHeader,
    LongWalk,
    NewRecord,
    Record,
    assign,
    build_batch,
    checksum_holds,
    iter_records,
    read_header,
    stamp_log_append_time,
    validate,
)
from appliance.wire.batch_header import ATTRIBUTES_AT, CRC_AT, HEADER
from appliance.wire.recompression import STEP, recompress
from appliance.wire.record_walk import walk_fields, walk_lengths

NOW = 1_700_000_000_000
RULES = LogConfig()
COMPACTED = LogConfig(compact=True)
KAFKA = {name: bytes.fromhex(text) for name, text in golden("batches.hex")}
KAFKA_RECORDS = [
    Record(0, NOW, b"k1", b"value one", ((b"h", b"x"), (b"n", None))),
    Record(1, NOW + 123, None, b"value two value two value two value two", ()),
    Record(2, NOW - 10, b"k3", None, ()),
]
PRODUCED = [name for name in KAFKA if name != "transactional"]


def build(count: int = 3, *, key: bytes | None = b"k", codec: int = 0, **options: int) -> bytes:
    records = [NewRecord(NOW, key, b"value %d" % i) for i in range(count)]
    return build_batch(records, codec=codec, **options)


def resealed(batch: bytes) -> memoryview:
    """With a checksum that holds, so that what is wrong is found behind it."""
    out = bytearray(batch)
    struct.pack_into(">I", out, CRC_AT, crc32c(bytes(out[ATTRIBUTES_AT:])))
    return memoryview(out)


def with_header(batch: bytes, **changes: int) -> memoryview:
    header = BatchHeader(*HEADER.unpack_from(batch))._replace(**changes)
    return resealed(HEADER.pack(*header) + batch[HEADER.size :])


def refused(batch: bytes | memoryview, rules: LogConfig = RULES, **options: bool) -> PeerError:
    with pytest.raises(PeerError) as caught:
        validate(memoryview(batch), rules, NOW, **options)
    return caught.value


def code_of(batch: memoryview, rules: LogConfig) -> int:
    try:
        validate(batch, rules, NOW)
    except PeerError as error:
        return error.code
    return errors.NONE


@pytest.mark.parametrize("name", PRODUCED)
def test_batch_of_kafkas_client_is_taken_and_read(name: str) -> None:
    header = validate(memoryview(KAFKA[name]), RULES, NOW)
    assert header.record_count == 3
    assert header.max_timestamp == NOW + 123
    assert list(iter_records(KAFKA[name])) == KAFKA_RECORDS
    assert checksum_holds(memoryview(KAFKA[name]))


def test_transactional_batch_needs_permission() -> None:
    batch = bytearray(KAFKA["transactional"])
    assign(memoryview(batch), 0, -1)
    assert refused(batch).code == errors.INVALID_TXN_STATE
    header = validate(memoryview(batch), RULES, NOW, transactional=True)
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 2, 17)


@pytest.mark.parametrize("name", ["none", "idempotent", "snappy", "lz4"])
def test_building_the_same_records_gives_kafkas_bytes(name: str) -> None:
    header = read_header(KAFKA[name])
    built = build_batch(
        [NewRecord(*record[1:]) for record in KAFKA_RECORDS],
        codec=header.codec,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    assert built == KAFKA[name]


@pytest.mark.parametrize("name", PRODUCED)
def test_every_truncation_and_any_tail_is_refused(name: str) -> None:
    batch = KAFKA[name]
    for size in range(len(batch)):
        assert refused(batch[:size]).code == errors.CORRUPT_MESSAGE
    assert refused(batch + b"\0").code == errors.INVALID_RECORD
    assert refused(batch + batch).code == errors.INVALID_RECORD


@pytest.mark.parametrize("name", PRODUCED)
def test_every_flipped_bit_is_refused(name: str) -> None:
    """The checksum does not cover the base offset, which must be 0, nor the leader epoch."""
    for at in [*range(12), *range(16, len(KAFKA[name]))]:
        for bit in range(8):
            batch = bytearray(KAFKA[name])
            batch[at] ^= 1 << bit
            refused(batch)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"record_count": 2, "last_offset_delta": 1}, errors.INVALID_RECORD),
        ({"record_count": 4, "last_offset_delta": 3}, errors.INVALID_RECORD),
        ({"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2}, errors.INVALID_RECORD),
        ({"record_count": 0, "last_offset_delta": -1}, errors.INVALID_RECORD),
        ({"record_count": -1, "last_offset_delta": -2}, errors.INVALID_RECORD),
        ({"last_offset_delta": 3}, errors.INVALID_RECORD),
        ({"base_offset": 7}, errors.INVALID_RECORD),
        ({"magic": 1}, errors.INVALID_RECORD),
        ({"magic": 3}, errors.CORRUPT_MESSAGE),
        ({"batch_length": -1}, errors.CORRUPT_MESSAGE),
        ({"batch_length": 2**31 - 1}, errors.CORRUPT_MESSAGE),
        ({"attributes": 0x08, "max_timestamp": -1}, errors.INVALID_TIMESTAMP),
        ({"attributes": 0x20}, errors.INVALID_RECORD),
        ({"attributes": 0x40}, errors.INVALID_RECORD),
        ({"attributes": 5}, errors.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 7}, errors.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 4}, errors.CORRUPT_MESSAGE),
        ({"producer_id": 5}, errors.INVALID_RECORD),
        ({"producer_id": 5, "producer_epoch": 0}, errors.INVALID_RECORD),
        ({"producer_id": -2, "producer_epoch": 0, "base_sequence": 0}, errors.INVALID_RECORD),
    ],
)
def test_lies_in_the_header_get_kafkas_codes(changes: dict[str, int], code: int) -> None:
    assert refused(with_header(build(), **changes)).code == code


@pytest.mark.parametrize("codec", range(5))
def test_a_lying_count_is_found_behind_every_codec(codec: int) -> None:
    for count in (1, 299, 301, 2**20):
        batch = with_header(
            build(300, codec=codec), record_count=count, last_offset_delta=count - 1
        )
        assert refused(batch).code == errors.INVALID_RECORD


def test_compressed_batch_may_not_hold_millions_of_records() -> None:
    """Producers split a batch that is too large and try again."""
    for count in (RECORDS_MAX + 1, 2**31 - 1):
        batch = with_header(build(codec=4), record_count=count, last_offset_delta=count - 1)
        assert refused(batch).code == errors.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("client", ["kafka", "aiokafka"])
@pytest.mark.filterwarnings("ignore:.*_text is deprecated")
def test_batches_of_python_clients_are_taken(client: str, codec: int) -> None:
    module = importlib.import_module(f"{client}.record.default_records")
    builder = module.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for i in range(300):
        value = b"value" * (i % 50)
        builder.append(i, timestamp=NOW + i, key=b"%d" % i, value=value, headers=[("h", b"x")])
    batch = memoryview(bytearray(builder.build()))
    for rules in (RULES, COMPACTED):
        assert validate(batch, rules, NOW).record_count == 300
    assert [(r.offset, r.key, len(r.value or b"")) for r in iter_records(batch)] == [
        (i, b"%d" % i, 5 * (i % 50)) for i in range(300)
    ]


def test_size_limit_is_of_the_whole_batch() -> None:
    batch = build()
    validate(memoryview(batch), LogConfig(max_message_bytes=len(batch)), NOW)
    error = refused(batch, LogConfig(max_message_bytes=len(batch) - 1))
    assert error.code == errors.MESSAGE_TOO_LARGE
    assert f"max.message.bytes={len(batch) - 1}" in error.message


def test_timestamps_are_held_against_the_topics_bounds() -> None:
    rules = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=10)

    def at(*timestamps: int) -> memoryview:
        return memoryview(build_batch([NewRecord(time, b"k", b"v") for time in timestamps]))

    validate(at(NOW - 1000, NOW + 10), rules, NOW)
    validate(at(-1), rules, NOW)
    for batch in (at(NOW - 1001), at(NOW + 11), at(NOW, NOW + 11), at(NOW - 1001, NOW)):
        assert refused(batch, rules).code == errors.INVALID_TIMESTAMP
    appended = LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_after_max_ms=10)
    validate(at(NOW + 11), appended, NOW)


@pytest.mark.parametrize("codec", range(5))
def test_compacted_topic_needs_keys(codec: int) -> None:
    validate(memoryview(build(200, codec=codec)), COMPACTED, NOW)
    validate(memoryview(build(codec=codec, key=b"")), COMPACTED, NOW)
    validate(memoryview(build(codec=codec, key=None)), RULES, NOW)
    error = refused(build(codec=codec, key=None), COMPACTED)
    assert error.code == errors.INVALID_RECORD
    assert "record 0 has no key" in error.message


def test_compacted_topic_reads_every_field() -> None:
    """Any change behind the checksum either leaves the fields readable or is INVALID_RECORD."""
    original = build(5)
    for at in range(HEADER.size, len(original)):
        for flip in (0x01, 0x80, 0xFF):
            batch = bytearray(original)
            batch[at] ^= flip
            sealed = resealed(batch)
            code = code_of(sealed, COMPACTED)
            assert code in (errors.NONE, errors.INVALID_RECORD)
            if code == errors.NONE:
                assert len(list(iter_records(sealed))) == 5


def test_log_append_time_is_stamped_in_place() -> None:
    batch = bytearray(build())
    stamp_log_append_time(memoryview(batch), NOW + 5)
    assign(memoryview(batch), 1000, 7)
    assert checksum_holds(memoryview(batch))
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (1000, 1002, 7)
    assert header.is_log_append_time
    assert {(r.offset, r.timestamp) for r in iter_records(batch)} == {
        (offset, NOW + 5) for offset in (1000, 1001, 1002)
    }


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_recompressing_keeps_the_records(source: int, target: int) -> None:
    batch = build(50, codec=source)
    again = recompress(memoryview(batch), target)
    assert validate(again, RULES, NOW).codec == target
    assert list(iter_records(again)) == list(iter_records(batch))


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_a_large_batch_is_recompressed_in_steps(source: int, target: int) -> None:
    value = bytes(range(256)) * 200
    batch = build_batch([NewRecord(NOW, None, value, ()) for _ in range(60)], codec=source)
    with pytest.raises(LongWalk) as steps:
        recompress(memoryview(batch), target)
    walk, count = steps.value.walk, 1
    while not walk.advance():
        count += 1
    assert count == len(value) * 60 // STEP
    again = recompress(memoryview(batch), target, walk)
    assert read_header(again).codec == target
    assert list(iter_records(again)) == list(iter_records(batch))
    other = (target + 1) % 5
    with pytest.raises(LongWalk):  # the setting has changed meanwhile
        recompress(memoryview(batch), other, walk)


# Properties ---------------------------------------------------------------------------------------

small = st.binary(max_size=200)
records = st.lists(
    st.builds(
        NewRecord,
        st.integers(NOW - 10**6, NOW + 10**6),
        st.none() | small,
        st.none() | small,
        st.lists(st.tuples(small, st.none() | small), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=40,
)


@given(records, st.sampled_from(range(5)))
def test_what_is_built_is_taken_and_read_back(made: list[NewRecord], codec: int) -> None:
    batch = build_batch(made, codec=codec, base_offset=0)
    header = validate(memoryview(batch), RULES, NOW)
    assert header.max_timestamp == max(record.timestamp for record in made)
    assert [tuple(r)[1:] for r in iter_records(batch)] == [tuple(record) for record in made]


@given(st.binary(max_size=300), st.integers(1, 40), st.sampled_from(range(5)), st.booleans())
def test_hostile_records_are_refused_or_readable(
    body: bytes, count: int, codec: int, opened: bool
) -> None:
    """Random bytes as records, compressed or only said to be: an error code, nothing else."""
    body = compression.compress(codec, body) if opened else body
    head = HEADER.pack(0, 49 + len(body), -1, 2, 0, codec, count - 1, NOW, NOW, -1, -1, -1, count)
    batch = resealed(head + body)
    for rules in (RULES, COMPACTED):
        assert code_of(batch, rules) in (
            errors.NONE,
            errors.INVALID_RECORD,
            errors.CORRUPT_MESSAGE,
            errors.UNSUPPORTED_COMPRESSION_TYPE,
        )


def plain_walk(data: bytes, count: int) -> tuple[int, int]:
    """What walk_lengths must find, one byte after the other."""
    position = 0
    for remaining in range(count, 0, -1):
        value = shift = 0
        at = position
        while True:
            if at >= len(data):
                return position, remaining
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                break
            if shift == 35:
                raise PeerError(errors.INVALID_RECORD, "")
        if value & 1 or value >> 1 < 6:
            raise PeerError(errors.INVALID_RECORD, "")
        if at + (value >> 1) > len(data):
            return position, remaining
        position = at + (value >> 1)
    return position, 0


@given(
    st.lists(st.tuples(st.integers(6, 9000), st.integers(1, 90)), min_size=1, max_size=6),
    st.integers(-3, 3),
    st.integers(0, 3),
)
def test_runs_of_equal_lengths_are_walked_as_one_by_one(
    runs: list[tuple[int, int]], more: int, cut: int
) -> None:
    data = bytearray()
    for length, times in runs:
        data += (varint(length * 2) + bytes(length)) * times
    count = max(0, sum(times for _, times in runs) + more)
    whole = bytes(data[: len(data) - cut])
    assert walk_lengths(memoryview(whole), 0, len(whole), count)[:2] == plain_walk(whole, count)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_are_walked_as_one_by_one(data: bytes, count: int) -> None:
    try:
        expected = plain_walk(data, count)
    except PeerError:
        with pytest.raises(PeerError):
            walk_lengths(data, 0, len(data), count)
    else:
        assert walk_lengths(data, 0, len(data), count)[:2] == expected


@given(records, st.integers(0, 2**32))
def test_both_walks_stop_at_the_same_cut(made: list[NewRecord], seed: int) -> None:
    body = build_batch(made)[HEADER.size :]
    end = random.Random(seed).randrange(len(body) + 1)
    cut = body[:end]
    count = len(made)
    lengths = walk_lengths(cut, 0, end, count)
    assert walk_fields(cut, 0, end, count, 0, False)[:2] == lengths[:2]
