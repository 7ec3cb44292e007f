"""Fetch by another replica: what its home hears, when it is answered, and with what."""

import pytest
from fake_host import FakeHost
from test_fetch_handler import codes, fetch, found, lengths

from appliance.authorization.operations import CLUSTER_ACTION
from appliance.authorization.rights import Authorizer
from appliance.base import errors
from appliance.handlers import k01_fetch, k02_list_offsets, k21_delete_records
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.ring.messages import ANY_REPLICA, READ_COMMITTED, READ_REPLICA, READ_WAIT
from appliance.ring.partition_table import BYTES_OUT, TO_FOLLOWERS

NODE = 2
LIFE = 12


@pytest.fixture
def handler():
    numbers = iter(range(100, 200))
    return k01_fetch.handler(FetchSessions(4, lambda: next(numbers)))


def pull(*partitions, last=3, start=1, replica=NODE, **rest):
    """A follower's request: partitions as (index, fetch offset)."""
    values = fetch(*partitions, **rest) | {"replica_id": replica}
    if replica >= 0:
        values["replica_state"] = {"replica_id": replica, "replica_epoch": LIFE}
    for topic in values["topics"]:
        for partition in topic["partitions"]:
            partition["last_fetched_epoch"] = last
            partition["log_start_offset"] = start
            partition["current_leader_epoch"] = 5
    return values


@pytest.fixture
def host():
    host = FakeHost()
    host.rows = dict.fromkeys(range(4), (6, 6, 0))
    host.log_ends = dict.fromkeys(range(4), 10)
    return host


@pytest.mark.parametrize("version", range(4, 19))
def test_the_home_hears_who_fetches_and_what_it_has(handler, host, version):
    x = host.start(handler, version, pull((0, 8)))
    assert [(ask[0], ask[2], ask[3]) for ask in host.asked] == [(0, READ_REPLICA, 8)]
    life = LIFE if version >= 15 else -1
    last = 3 if version >= 12 else -1
    start = 1 if version >= 5 else -1
    assert host.heard == [(0, (NODE, life), last, start)]
    host.complete(x, 0, **found(50, high_watermark=6))
    assert lengths(host) == {0: 50}


def test_where_it_is_is_told_also_at_the_end_and_once(handler, host):
    x = host.start(handler, 17, pull((0, 10), (1, 10), session=(0, 0), max_wait=0))
    assert [ask[0] for ask in host.asked] == [0, 1]
    for index in (0, 1):
        host.complete(x, index, **found(0, high_watermark=6))
    session = host.answer.session_id
    host.asked.clear()
    host.start(handler, 17, pull(session=(session, 1), max_wait=0))
    assert host.asked == [] and lengths(host) == {}
    host.start(handler, 17, pull((1, 10), session=(session, 2), max_wait=0))
    assert [ask[0] for ask in host.asked] == [1], "the one that it names"
    host.log_ends[0] = 11
    host.asked.clear()
    host.start(handler, 17, pull(session=(session, 3), max_wait=0))
    assert 0 in [ask[0] for ask in host.asked], "the one that grew"


def test_homes_hear_beside_records_of_others(handler, host):
    """Who is at the end of one partition is not parked while there is something in another."""
    x = host.start(handler, 17, pull((0, 10), (1, 8), session=(0, 0)))
    assert sorted(ask[:3:2] for ask in host.asked) == [(0, READ_REPLICA), (1, READ_REPLICA)]
    host.complete(x, 0, **found(0, high_watermark=6))
    host.complete(x, 1, **found(50, high_watermark=6))
    host.asked.clear()
    x = host.start(handler, 17, pull((1, 10), session=(host.answer.session_id, 1)))
    waits = READ_REPLICA | READ_WAIT
    assert [ask[:3:2] for ask in host.asked] == [(0, waits), (1, waits)]


def test_a_high_watermark_that_rose_is_told_with_the_next_answer(handler, host):
    x = host.start(handler, 17, pull((0, 10), session=(0, 0), max_wait=0))
    host.complete(x, 0, **found(0, high_watermark=6))
    session = host.answer.session_id
    host.rows[0] = (10, 10, 0)
    host.start(handler, 17, pull(session=(session, 1), max_wait=0))
    ((row,),) = [topic.partitions for topic in host.answer.responses]
    assert row.high_watermark == 10


def test_it_waits_for_the_log_to_grow_and_takes_all_that_did(handler, host):
    x = host.start(handler, 17, pull((0, 10), (1, 10), (2, 10)))
    assert [ask[2] for ask in host.asked] == [READ_REPLICA | READ_WAIT] * 3
    host.log_ends |= {0: 12, 2: 12}
    host.publish()
    host.complete(x, 2, **found(40, high_watermark=6))
    assert host.answer is None, "0 grew too"
    assert [(ask[0], ask[2]) for ask in host.asked[3:]] == [(0, READ_REPLICA)]
    host.complete(x, 0, **found(30, high_watermark=6))
    assert lengths(host) == {0: 30, 1: 0, 2: 40}


def test_where_consumers_read_from_it_it_waits_for_the_high_watermark_too(handler, host):
    host.rack = b""
    host.start(handler, 17, pull((0, 10), session=(0, 0)))
    assert host.waits_for == [0], "it has not been told any"
    host.rows[0] = (7, 7, 0)
    host.publish()
    x = host.start(handler, 17, pull((0, 10), session=(0, 0)))
    host.complete(x, 0, **found(0, high_watermark=7))
    ((row,),) = [topic.partitions for topic in host.answer.responses]
    assert row.high_watermark == 7, "that answers it"
    host.start(handler, 17, pull(session=(host.answer.session_id, 1)))
    assert host.waits_for[-1] == 8


def test_elsewhere_a_high_watermark_does_not_wake_it(handler, host):
    host.start(handler, 17, pull((0, 10), session=(0, 0)))
    host.start(handler, 17, pull((0, 10)))
    assert host.waits_for == [0, 0]


def test_max_wait_ends_it_with_what_is_known_by_then(handler, host):
    x = host.start(handler, 17, pull((0, 10)))
    host.rows[0] = (10, 10, 0)
    host.publish()
    handler.expire(host, x)
    assert [ask[2] for ask in host.asked] == [READ_REPLICA | READ_WAIT, READ_REPLICA]
    host.complete(x, 0, **found(0, high_watermark=10))
    ((row,),) = [topic.partitions for topic in host.answer.responses]
    assert (row.high_watermark, row.records or b"") == (10, b"")


def test_who_is_no_replica_is_refused_however_late_the_home_looks(handler, host):
    """The wait is over before the home has looked at the parked read, which it refuses."""
    x = host.start(handler, 18, pull((0, 10)))
    handler.expire(host, x)
    assert host.answer is None
    host.complete(x, 0, error=errors.NOT_LEADER_OR_FOLLOWER)
    assert codes(host) == {0: errors.NOT_LEADER_OR_FOLLOWER}


def test_a_home_that_has_answered_once_is_not_asked_at_the_end_of_a_wait(handler, host):
    x = host.start(handler, 17, pull((0, 10), session=(0, 0)))
    handler.expire(host, x)
    host.complete(x, 0, **found(0, high_watermark=6))
    x = host.start(handler, 17, pull(session=(host.answer.session_id, 1)))
    host.asked.clear()
    handler.expire(host, x)
    assert host.asked == [] and host.answer is not None


def test_where_logs_part_is_told_at_once_and_without_records(handler, host):
    x = host.start(handler, 17, pull((0, 8), (1, 10), session=(0, 0)))
    host.complete(x, 0, a=6, b=6, d=2, g=7, h=5, j=1)
    host.complete(x, 1, **found(0, high_watermark=6))
    rows = {row.partition_index: row for row in host.answer.responses[0].partitions}
    parts = rows[0].diverging_epoch
    assert (parts.epoch, parts.end_offset, rows[0].high_watermark) == (2, 7, 6)
    assert rows[1].diverging_epoch.epoch == -1
    session = host.answer.session_id
    x = host.start(handler, 17, pull((0, 8), session=(session, 1)))
    host.complete(x, 0, a=6, b=6, d=2, g=7, h=5, j=1)
    assert lengths(host) == {0: 0}, "an incremental answer tells it too"


def test_an_error_wakes_it(handler, host):
    x = host.start(handler, 17, pull((0, 10)))
    host.complete(x, 0, error=errors.NOT_LEADER_OR_FOLLOWER, a=-1)
    assert codes(host) == {0: errors.NOT_LEADER_OR_FOLLOWER}


def test_a_session_that_turns_into_a_replicas_tells_all(handler, host):
    host.start(handler, 17, fetch((0, 6), session=(0, 0), max_wait=0))
    session = host.answer.session_id
    host.start(handler, 17, pull(session=(session, 1), max_wait=0))
    assert [(ask[0], ask[2]) for ask in host.asked] == [(0, READ_REPLICA)]


def test_what_replicas_take_is_not_what_consumers_are_served(handler, host):
    x = host.start(handler, 17, pull((0, 8)))
    host.complete(x, 0, **found(50, high_watermark=6))
    assert host.served[BYTES_OUT] == 0
    assert host.served[TO_FOLLOWERS + BYTES_OUT] == 50
    assert host.remembered == []


def test_isolation_is_nothing_to_replicas(handler, host):
    x = host.start(handler, 17, pull((0, 8)) | {"isolation_level": 1})
    assert host.asked[0][2] == READ_REPLICA
    host.complete(x, 0, **found(50, high_watermark=6))
    ((row,),) = [topic.partitions for topic in host.answer.responses]
    assert row.aborted_transactions is None


class Denies(Authorizer):
    """Everything is allowed but one operation."""

    def __init__(self, operation):
        self.operation = operation

    def allows(self, caller, operation, resource):
        return operation != self.operation

    def allows_some(self, caller, operation, kind):
        return operation != self.operation

    def allows_everything(self, caller):
        return False


def test_who_is_no_broker_reads_nothing_as_one(handler, host):
    host.authorizer = Denies(CLUSTER_ACTION)
    host.start(handler, 17, pull((0, 8)))
    assert codes(host) == {0: errors.TOPIC_AUTHORIZATION_FAILED}
    assert host.asked == []
    x = host.start(handler, 17, fetch((0, 0)))
    host.complete(x, 0, **found(50, high_watermark=6))
    assert lengths(host) == {0: 50}


# ListOffsets and DeleteRecords ----------------------------------------------------------------


def list_latest(replica, isolation=1):
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    return {
        "replica_id": replica,
        "isolation_level": isolation,
        "timeout": 1000,
        "topics": [{"name": "flights", "partitions": [partition]}],
    }


@pytest.mark.parametrize(
    ("replica", "flags"),
    [(-1, READ_COMMITTED), (-2, READ_REPLICA | ANY_REPLICA), (2, READ_REPLICA)],
)
def test_for_who_is_no_consumer_the_latest_is_the_log_end(host, replica, flags):
    host.start(k02_list_offsets.HANDLER, 7, list_latest(replica))
    assert [ask[2] for ask in host.asked] == [flags]


@pytest.mark.parametrize(
    ("version", "code"), [(4, errors.LEADER_NOT_AVAILABLE), (5, errors.OFFSET_NOT_AVAILABLE)]
)
def test_an_old_client_is_told_something_that_it_knows(host, version, code):
    x = host.start(k02_list_offsets.HANDLER, version, list_latest(-1))
    host.complete(x, 0, error=errors.OFFSET_NOT_AVAILABLE, a=-1)
    assert int(host.answer.topics[0].partitions[0].error_code) == code


def test_deletions_do_not_wait_longer_than_asked(host):
    partitions = [{"partition_index": index, "offset": 3} for index in (0, 1)]
    topics = [{"name": "flights", "partitions": partitions}]
    x = host.start(k21_delete_records.HANDLER, 2, {"topics": topics, "timeout": 70})
    assert x.deadline_ns == 70_000_000
    host.complete(x, 0, a=3)
    k21_delete_records.HANDLER.expire(host, x)
    rows = host.answer.topics[0].partitions
    assert [(int(row.error_code), row.low_watermark) for row in rows] == [
        (0, 3),
        (errors.REQUEST_TIMED_OUT, -1),
    ]
    host.answer = None
    host.complete(x, 1, a=3)
    assert host.answer is None, "it was answered"
