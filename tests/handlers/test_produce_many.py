"""A Produce of many partitions is asked for and answered in parts."""

import pytest
from fake_host import FakeHost
from test_transactional_produce import Host as Transactional
from test_transactional_produce import batch, request

from appliance.base import errors
from appliance.handlers.k00_produce import HANDLER, PACE_NS
from appliance.wire.produce import SLICE

MANY = 1000
RECORDS = batch(transactional=False)


def ask(host, indexes, version=9, **rest):
    batches = dict.fromkeys(indexes, RECORDS)
    values = request(batches, version, transactional_id=None, **rest)
    return host.start(HANDLER, version, values)


def rows(host):
    return [
        (row.index, int(row.error_code), row.base_offset)
        for topic in host.answer.responses
        for row in topic.partition_responses
    ]


def answer_all(host, x):
    """Answer what is pending, each batch by its own index; in how many parts they came."""
    parts = 0
    while x.answer is None:
        pending = [index for index in x.pending if index < MANY]
        assert 0 < len(pending) <= SLICE, "few are asked at a time"
        for index in pending:
            host.complete(x, index, a=index, b=-1, c=0)
        parts += 1
    return parts


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_all_are_asked_in_parts_and_answered_in_request_order(version):
    host = FakeHost(MANY)
    x = ask(host, range(MANY), version)
    assert answer_all(host, x) == -(-MANY // SLICE)
    assert [index for index, *_ in host.asked] == list(range(MANY))
    assert rows(host) == [(index, 0, index) for index in range(MANY)]
    assert not x.pending


def test_those_that_are_not_there_are_refused_without_asking():
    host = FakeHost(4)
    x = ask(host, range(MANY))
    answer_all(host, x)
    assert len(host.asked) == 4
    unknown = [code for _, code, _ in rows(host)][4:]
    assert unknown == [errors.UNKNOWN_TOPIC_OR_PARTITION] * (MANY - 4)


def test_a_wrong_number_of_acks_refuses_all():
    host = FakeHost(MANY)
    ask(host, range(MANY), acks=5)
    assert not host.asked
    assert {code for _, code, _ in rows(host)} == {errors.INVALID_REQUIRED_ACKS}


def test_the_rest_is_asked_for_after_a_while_though_replicas_are_slow():
    """A request that waits for replicas must not keep the others in line waiting."""
    host, left = FakeHost(MANY), []
    host.leave_line = lambda x: left.append(x)
    x = ask(host, range(MANY))
    while not left:
        ((index, delay_ns),) = host.waits
        assert delay_ns == PACE_NS
        host.waits.clear()
        asked = len(host.asked)
        host.wake(x, index)
        assert SLICE >= len(host.asked) - asked > 0
    assert len(host.asked) == MANY and x.answer is None
    for index in list(x.pending):
        host.complete(x, index, a=index, b=-1, c=0)
    assert rows(host) == [(index, 0, index) for index in range(MANY)]


def test_what_is_late_is_told_so_and_what_was_not_asked_for_is_not_written():
    host = FakeHost(MANY)
    x = ask(host, range(MANY))
    for index in range(10):
        host.complete(x, index, a=index, b=-1, c=0)
    HANDLER.expire(host, x)
    HANDLER.expire(host, x)
    codes = [code for _, code, _ in rows(host)]
    assert codes == [0] * 10 + [errors.REQUEST_TIMED_OUT] * (MANY - 10)
    assert len(host.asked) == SLICE
    for index in list(x.pending):
        host.complete(x, index, a=index, b=-1, c=0)
    assert len(host.asked) == SLICE and not x.pending


def test_a_home_that_dies_refuses_what_it_was_asked_and_the_next_ones_go_to_its_successor():
    host = FakeHost(MANY)
    x = ask(host, range(MANY), version=12)
    host.lose(x, 0)
    answer_all(host, x)
    assert rows(host)[:2] == [(0, errors.NOT_LEADER_OR_FOLLOWER, -1), (1, 0, 1)]


def test_acks_0_is_not_answered_and_an_error_hangs_up():
    host = FakeHost(MANY)
    x = ask(host, range(MANY), version=7, acks=0)
    answer_all(host, x)
    assert host.answer is None and not host.closed
    x = ask(host, range(MANY + 1), version=7, acks=0)
    answer_all(host, x)
    assert host.answer is None and host.closed


def test_transactional_batches_are_asked_in_parts_and_verified_at_once():
    host = Transactional(partitions=MANY)
    x = host.begin(dict.fromkeys(range(MANY), batch()))
    parts = 0
    while not host.questions:
        pending = [index for index in x.pending if index < MANY]
        assert 0 < len(pending) <= SLICE
        for index in pending:
            host.unverified(x, index, guard=index + 1)
        parts += 1
    assert parts == -(-MANY // SLICE)
    host.asked.clear()
    host.tell(x, dict.fromkeys(range(MANY), errors.NONE))
    answer_all(host, x)
    assert [(index, guard) for index, _, _, _, guard, *_ in host.asked] == [
        (index, index + 1) for index in range(MANY)
    ]
    assert set(host.told().values()) == {(0, index) for index in range(MANY)}
    assert not host.one_line.under_way


def test_two_producers_in_one_request_are_refused():
    host = Transactional(partitions=MANY)
    host.begin(dict.fromkeys(range(MANY), batch()) | {MANY - 1: batch(producer=9)})
    assert {code for code, _ in host.told().values()} == {errors.INVALID_PRODUCER_ID_MAPPING}


def test_a_transaction_that_is_late_leaves_the_line():
    host = Transactional(partitions=MANY)
    x = host.begin(dict.fromkeys(range(MANY), batch()))
    host.complete(x, 0, a=0, b=-1, c=0)
    HANDLER.expire(host, x)
    assert host.told()[0] == (0, 0)
    assert host.told()[1] == (errors.REQUEST_TIMED_OUT, -1)
    for index in list(x.pending):
        host.complete(x, index, a=index, b=-1, c=0)
    assert len(host.asked) == SLICE
    assert not host.one_line.under_way
