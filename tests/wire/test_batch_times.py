"""Which timestamps of a produced batch are believed: the head, held against the records."""

import pytest

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.log_config import LogConfig
from appliance.wire.batch import FEW_RECORDS, checksum_holds, read_header, validate
from appliance.wire.batch_header import LOG_APPEND_TIME_BIT, MAX_TIMESTAMP_AT, RECORDS_AT
from appliance.wire.compression import compress
from tests.differential.scripts.produced_heads import headed, record, summed

NOW = 1_700_000_000_000
MANY = FEW_RECORDS + 12
HOUR = 3_600_000


def batch(times, newest, *, codec=0, base=NOW, attributes=0, offsets=None):
    """A batch of records with these timestamp deltas, and a head that states `newest`."""
    pairs = list(zip(times, offsets or range(len(times)), strict=True))
    data = bytearray(headed(*pairs, base=base, newest=newest, attributes=attributes))
    if codec:
        records = b"".join(record(*pair) for pair in pairs)
        data[RECORDS_AT:] = compress(codec, records)
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[22] |= codec
        data = bytearray(summed(data))
    return memoryview(data)


def times(count, at, delta):
    """`count` timestamp deltas, all 0 but the one at `at`."""
    found = [0] * count
    found[at] = delta
    return found


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize(
    ("deltas", "stated"),
    [
        ([0, 5, 2], -1),
        ([0, 5, 2], NOW),
        ([0, 5, 2], NOW + 2),
        ([0, 5, 2], NOW + 1000),
        ([0], NOW - HOUR),
        ([5, 0], NOW),
        (times(MANY, MANY // 2, 5), -1),
        (times(MANY, MANY // 2, 5), NOW - 1),
        (times(MANY, 0, 5), NOW),
        (times(MANY, MANY - 1, 5), NOW),
    ],
)
def test_a_head_is_corrected_to_the_newest_record(codec, deltas, stated):
    data = batch(deltas, stated, codec=codec)
    header = validate(data, LogConfig(), NOW)
    assert header == read_header(data)
    assert header.max_timestamp == NOW + 5 * (5 in deltas)
    assert checksum_holds(data)


@pytest.mark.parametrize("codec", range(5))
def test_a_head_that_is_right_stays_as_it_was_sent(codec):
    for deltas in ([0], [0, 5, 2], [3, -7], times(MANY, 3, -9), times(MANY, MANY - 1, 1000)):
        data = batch(deltas, NOW + max(deltas), codec=codec)
        sent = bytes(data)
        assert validate(data, LogConfig(), NOW) == read_header(sent)
        assert data == sent


def test_records_without_a_time_have_none_in_the_head():
    data = batch([0, 0], -1, base=-1)
    assert validate(data, LogConfig(message_timestamp_before_max_ms=1), NOW).max_timestamp == -1


def test_the_middle_of_many_records_is_believed():
    """The price of not reading every record: docs/differences.md says so."""
    data = batch(times(MANY, MANY // 2, 5), NOW)
    assert validate(data, LogConfig(), NOW).max_timestamp == NOW


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("delta", [-2 * HOUR, 2 * HOUR])
@pytest.mark.parametrize("count", [2, MANY])
def test_bounds_hold_for_what_the_records_say(codec, delta, count):
    rules = LogConfig(message_timestamp_before_max_ms=HOUR, message_timestamp_after_max_ms=HOUR)
    with pytest.raises(PeerError) as caught:
        validate(batch(times(count, count - 1, delta), NOW, codec=codec), rules, NOW)
    assert caught.value.code == errors.INVALID_TIMESTAMP


def test_a_time_beyond_64_bits_is_refused():
    data = batch([1], -1, base=(1 << 63) - 1)
    with pytest.raises(PeerError) as caught:
        validate(data, LogConfig(message_timestamp_after_max_ms=(1 << 63) - 1), NOW)
    assert caught.value.code == errors.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize(
    "offsets", [[1000], [0, 1000], [7, 1], [-1, 0], [*range(MANY - 1), MANY], [1, *range(1, MANY)]]
)
def test_an_inner_offset_that_does_not_count_up_is_refused(codec, offsets):
    data = batch([0] * len(offsets), NOW, codec=codec, offsets=offsets)
    with pytest.raises(PeerError) as caught:
        validate(data, LogConfig(), NOW)
    assert caught.value.code == errors.INVALID_RECORD


def test_the_bit_of_append_time_is_cleared_where_producers_give_the_time():
    """As Apache Kafka 4.3.1: the head's time is that of all records then."""
    data = batch([0, 5], NOW + 1, attributes=LOG_APPEND_TIME_BIT)
    header = validate(data, LogConfig(), NOW)
    assert not header.is_log_append_time
    assert header.max_timestamp == NOW + 1
    assert header == read_header(data)
    assert checksum_holds(data)


def test_the_bit_of_append_time_is_refused_where_the_appliance_gives_the_time():
    data = batch([0], NOW, attributes=LOG_APPEND_TIME_BIT)
    with pytest.raises(PeerError) as caught:
        validate(data, LogConfig(message_timestamp_type="LogAppendTime"), NOW)
    assert caught.value.code == errors.INVALID_TIMESTAMP


def test_a_refused_batch_is_not_changed():
    data = batch([0, 2 * HOUR], -1)
    sent = bytes(data)
    with pytest.raises(PeerError):
        validate(data, LogConfig(), NOW)
    assert data == sent
    assert sent[MAX_TIMESTAMP_AT] == 255
