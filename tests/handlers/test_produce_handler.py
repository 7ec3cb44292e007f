"""Produce: what is asked of the partitions' homes and what the client is told."""

import pytest
from fake_host import FakeHost

from appliance.base import errors
from appliance.config.broker import BrokerConfig
from appliance.handlers.k00_produce import HANDLER
from appliance.ring.messages import APPEND


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
