"""Produce: what is asked of the partitions' homes and what the client is told."""

import pytest
from fake_host import FakeHost

from appliance.base import errors
from appliance.config.broker import BrokerConfig
from appliance.handlers.k00_produce import HANDLER
from appliance.handlers.transactional_produce import FLAGS_AT
from appliance.ring.messages import APPEND
from appliance.wire.batch import NewRecord, build_batch
from appliance.wire.compression import ZSTD
from tests.old_formats import Plain, message


def produce(acks, *partitions, topic="flights", records=b"batch", transactional_id=None):
    rows = [{"index": index, "records": records} for index in partitions]
    return {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout": 1000,
        "topic_data": [{"name": topic, "partition_data": rows}],
    }


def rows(host):
    return [
        (row.index, int(row.error_code), row.base_offset)
        for topic in host.answer.responses
        for row in topic.partition_responses
    ]


def test_each_batch_is_asked_for_by_its_place_and_answered_in_request_order():
    host = FakeHost()
    x = host.start(HANDLER, 9, produce(-1, 2, 0))
    assert [(index, op, length, acks) for index, op, _, _, _, length, acks in host.asked] == [
        (0, APPEND, 5, -1),
        (1, APPEND, 5, -1),
    ]
    for ask in host.asked:
        assert bytes(host.memory[ask[3] : ask[3] + 5]) == b"batch"
    host.complete(x, 1, a=70, b=-1, c=3)
    assert host.answer is None
    host.complete(x, 0, a=50, b=-1, c=3)
    assert rows(host) == [(2, 0, 50), (0, 0, 70)]


def test_unknown_partitions_do_not_keep_the_known_from_being_written():
    host = FakeHost()
    x = host.start(HANDLER, 9, produce(1, 9, 1))
    host.complete(x, 1, a=4)
    assert rows(host) == [(9, errors.UNKNOWN_TOPIC_OR_PARTITION, -1), (1, 0, 4)]


def test_a_dead_io_process_is_a_retriable_error():
    host = FakeHost()
    x = host.start(HANDLER, 9, produce(-1, 0))
    host.lose(x, 0)
    assert rows(host) == [(0, errors.NOT_LEADER_OR_FOLLOWER, -1)]


def test_acks_0_is_not_answered_and_an_error_hangs_up():
    host = FakeHost()
    x = host.start(HANDLER, 7, produce(0, 0))
    assert x.silent
    host.complete(x, 0, a=1)
    assert host.answer is None
    assert not host.closed
    host.start(HANDLER, 7, produce(0, 77))
    assert host.closed


def test_timed_out_batches_are_told_so_and_stay_pending_until_they_are_done():
    host = FakeHost()
    x = host.start(HANDLER, 9, produce(-1, 0, 1))
    host.complete(x, 0, a=10)
    HANDLER.expire(host, x)
    assert rows(host) == [(0, 0, 10), (1, errors.REQUEST_TIMED_OUT, -1)]
    assert x.pending, "the bytes are still in use"
    host.complete(x, 1, a=11)
    assert rows(host) == [(0, 0, 10), (1, errors.REQUEST_TIMED_OUT, -1)]


def test_wrong_acks_are_refused_whole():
    host = FakeHost()
    host.start(HANDLER, 9, produce(2, 0))
    assert rows(host) == [(0, errors.INVALID_REQUIRED_ACKS, -1)]
    assert not host.asked


def test_null_records_are_invalid():
    host = FakeHost()
    host.start(HANDLER, 9, produce(1, 0, records=None))
    assert rows(host) == [(0, errors.INVALID_RECORD, -1)]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, 3),
        (errors.INVALID_RECORD, 3),
        (errors.CORRUPT_MESSAGE, -1),
        (errors.MESSAGE_TOO_LARGE, -1),
    ],
)
def test_where_the_log_starts_is_told_beside_what_the_log_was_asked_for(code, told):
    host = FakeHost()
    host.config = BrokerConfig()
    x = host.start(HANDLER, 9, produce(1, 0))
    host.complete(x, 0, error=code, c=3)
    assert host.answer.responses[0].partition_responses[0].log_start_offset == told


def test_a_batch_too_large_names_its_size_and_the_setting():
    host = FakeHost()
    x = host.start(HANDLER, 9, produce(1, 0))
    host.complete(x, 0, error=errors.MESSAGE_TOO_LARGE)
    message = host.answer.responses[0].partition_responses[0].error_message
    assert "5 bytes" in message
    assert "max.message.bytes" in message


def idempotent(sequence, producer_id=7, epoch=0):
    records = [NewRecord(0, None, b"v")]
    batch = build_batch(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    return produce(-1, 0, records=bytes(batch))


def sent(host, values):
    """Whether it goes to its home: the request, or None when it was refused at once."""
    asked = len(host.asked)
    x = host.start(HANDLER, 9, values)
    if len(host.asked) > asked:
        return x
    assert rows(host) == [(0, errors.NOT_LEADER_OR_FOLLOWER, -1)]
    return None


def test_nothing_overtakes_what_a_dead_home_refused():
    host = FakeHost()
    first = sent(host, idempotent(0))
    second = sent(host, idempotent(1))
    host.lose(first, 0)
    host.lose(second, 0)
    assert sent(host, idempotent(2)) is None, "the next life would begin with it"
    assert sent(host, idempotent(2, producer_id=8)), "another producer"
    assert sent(host, idempotent(0)) and not host.overtaking.any
    assert sent(host, idempotent(1)) and sent(host, idempotent(2))


@pytest.mark.parametrize("after", ["a new epoch", "five of them", "ten seconds"])
def test_what_never_comes_back_holds_nobody_up_for_ever(after):
    host = FakeHost()
    host.lose(sent(host, idempotent(2**31 - 1)), 0)
    assert sent(host, idempotent(0)) is None, "sequences begin again"
    if after == "a new epoch":
        assert sent(host, idempotent(0, epoch=1))
    elif after == "five of them":
        assert [sent(host, idempotent(n)) for n in range(1, 5)] == [None] * 4
        assert sent(host, idempotent(5))
    else:
        host.now_ns += 10 * 10**9
        assert sent(host, idempotent(1))
    assert not host.overtaking.any


def test_who_has_no_sequences_is_never_held_up():
    host = FakeHost()
    host.lose(sent(host, produce(-1, 0, records=bytes(build_batch([NewRecord(0, None, b"v")])))), 0)
    host.lose(sent(host, produce(-1, 0)), 0)
    assert not host.overtaking.any


@pytest.mark.parametrize("version", [6, 7])
def test_zstd_is_refused_before_the_version_that_knows_it(version):
    host = FakeHost()
    records = build_batch([NewRecord(0, None, b"v")], codec=ZSTD)
    host.start(HANDLER, version, produce(-1, 0, records=records))
    if version == 7:
        assert len(host.asked) == 1
    else:
        assert host.asked == []
        assert rows(host) == [(0, errors.UNSUPPORTED_COMPRESSION_TYPE, -1)]


@pytest.mark.parametrize("stamp", [0x10, 0x04, 0x14])
def test_a_time_of_an_old_format_is_no_flag_of_a_batch(stamp):
    """The byte of a batch's attributes lies in the timestamp of a message of format 1."""
    host = FakeHost()
    old = message(Plain(0, stamp << 24, b"k", b"v" * 99), 1)
    assert old[FLAGS_AT] == stamp
    host.start(HANDLER, 6, produce(-1, 0, records=old))
    assert len(host.asked) == 1
