"""Fetch: reading, waiting for fetch.min.bytes, cutting to the budget, and sessions."""

import pytest
from fake_host import FakeHost

from appliance.base import errors
from appliance.handlers import k01_fetch
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.ring.messages import ABORTED, READ_GONE, READ_WAIT, REMOTE_COMES
from appliance.wire import aborted


@pytest.fixture
def handler():
    numbers = iter(range(100, 200))
    return k01_fetch.handler(FetchSessions(4, lambda: next(numbers)))


def fetch(*partitions, min_bytes=1, max_bytes=1000, max_wait=500, session=(0, -1), forgotten=()):
    return {
        "replica_id": -1,
        "max_wait": max_wait,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": 0,
        "session_id": session[0],
        "session_epoch": session[1],
        "rack_id": "",
        "topics": [
            {
                "topic": "flights",
                "topic_id": b"f" * 16,
                "partitions": [
                    {
                        "partition": partition,
                        "current_leader_epoch": -1,
                        "fetch_offset": offset,
                        "log_start_offset": -1,
                        "partition_max_bytes": 600,
                        "last_fetched_epoch": -1,
                    }
                    for partition, offset in partitions
                ],
            }
        ],
        "forgotten_topics_data": [
            {"topic": "flights", "topic_id": b"f" * 16, "partitions": list(forgotten)}
        ],
    }


def found(length, first=None, high_watermark=10):
    first = length if first is None else first
    return {"a": high_watermark, "b": high_watermark, "e": length, "f": first, "g": 0}


def lengths(host):
    return {
        row.partition_index: len(row.records or b"")
        for topic in host.answer.responses
        for row in topic.partitions
    }


def test_what_is_there_is_answered_at_once(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 3), (1, 0)))
    assert [ask[0] for ask in host.asked] == [0], "partition 1 has nothing at its end"
    host.complete(x, 0, **found(50))
    assert lengths(host) == {0: 50, 1: 0}
    assert not host.scheduled


def test_nothing_there_waits_and_the_first_record_wakes_it(handler):
    host = FakeHost()
    x = host.start(handler, 12, fetch((0, 0)))
    assert host.answer is None
    assert host.scheduled == [500_000_000]
    ((_, _, flags, _, _, _, enough),) = host.asked
    assert flags & READ_WAIT
    assert enough == 1
    host.complete(x, 0, **found(70))
    assert lengths(host) == {0: 70}


def test_too_little_waits_for_the_rest_and_the_deadline_sends_what_there_is(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 3), min_bytes=200))
    host.complete(x, 0, **found(50))
    assert host.asked[-1][2] & READ_WAIT
    assert host.asked[-1][6] == 200
    handler.expire(host, x)
    assert host.cancelled == 1
    assert lengths(host) == {0: 50}


def test_the_deadline_tells_how_far_a_partition_is_by_then(handler):
    """Of what lies behind an open transaction a reader hears no sooner."""
    host = FakeHost()
    x = host.start(handler, 12, fetch((0, 0)) | {"isolation_level": 1})
    host.rows[0] = (2, 0, 0)
    host.publish()
    handler.expire(host, x)
    ((row,),) = [topic.partitions for topic in host.answer.responses]
    assert (row.high_watermark, row.last_stable_offset) == (2, 0)
    assert len(host.asked) == 1, "only for the wait: there is nothing to read"


def test_the_deadline_sends_what_came_meanwhile(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 10), (1, 0), min_bytes=200))
    host.rows[0] = (12, 12, 0)
    host.publish()
    handler.expire(host, x)
    assert [(ask[0], ask[2] & READ_WAIT) for ask in host.asked[2:]] == [(0, 0)]
    host.complete(x, 0, **found(50, high_watermark=12))
    assert lengths(host) == {0: 50, 1: 0}


def test_a_home_that_does_not_answer_in_time_is_not_waited_for(handler):
    host = FakeHost()
    x = host.start(handler, 12, fetch((0, 0), min_bytes=200))
    host.rows[0] = (2, 2, 0)
    host.publish()
    handler.expire(host, x)
    assert host.answer is None
    handler.expire(host, x)
    assert lengths(host) == {0: 0}
    assert host.cancelled == 2


def test_growth_of_several_partitions_adds_up(handler):
    host = FakeHost()
    x = host.start(handler, 12, fetch((0, 0), (1, 0), min_bytes=100))
    host.complete(x, 0, **found(60))
    assert host.answer is None
    host.complete(x, 1, **found(60))
    assert lengths(host) == {0: 60, 1: 60}


def test_an_error_is_answered_without_waiting(handler):
    host = FakeHost()
    x = host.start(handler, 12, fetch((0, 3), (9, 0)))
    host.complete(x, 0, error=errors.OFFSET_OUT_OF_RANGE, a=-1)
    codes = {
        row.partition_index: int(row.error_code) for row in host.answer.responses[0].partitions
    }
    assert codes == {0: errors.OFFSET_OUT_OF_RANGE, 9: errors.UNKNOWN_TOPIC_OR_PARTITION}


def codes(host):
    return {
        row.partition_index: int(row.error_code)
        for topic in host.answer.responses
        for row in topic.partitions
    }


@pytest.mark.parametrize("min_bytes", [0, 1, 600])
@pytest.mark.parametrize("glanced", [True, False])
def test_who_is_at_the_end_of_an_offline_partition_is_told(handler, min_bytes, glanced):
    """Whatever the others have: each fetch that names it asks its home, which refuses."""
    host = FakeHost()
    host.rows[0] = host.rows[1] = (10, 10, 0)
    host.offline.add(1)
    if glanced:
        host.places[0, 3] = (4096, 600, 20)
    session = 0
    for epoch in range(3):
        host.asked.clear()
        named = ((0, 3), (1, 10)) if not epoch else ()
        x = host.start(handler, 12, fetch(*named, min_bytes=min_bytes, session=(session, epoch)))
        by_offset = {ask[3]: ask[0] for ask in host.asked}
        if not glanced:
            host.complete(x, by_offset[3], **found(600))
        host.complete(x, by_offset[10], error=errors.KAFKA_STORAGE_ERROR, a=-1)
        assert codes(host) == {0: errors.NONE, 1: errors.KAFKA_STORAGE_ERROR}
        assert lengths(host) == {0: 600, 1: 0}
        session = host.answer.session_id
    assert not host.scheduled


def test_a_partition_that_goes_offline_ends_the_wait(handler):
    host = FakeHost()
    x = host.start(handler, 12, fetch((0, 0), (1, 0), min_bytes=1000, session=(0, 0)))
    host.complete(x, 0, **found(60))
    host.complete(x, 1, error=errors.KAFKA_STORAGE_ERROR, a=-1)
    assert codes(host) == {0: errors.NONE, 1: errors.KAFKA_STORAGE_ERROR}
    assert lengths(host) == {0: 60, 1: 0}


def test_the_budget_cuts_later_partitions_but_never_the_first_batch(handler):
    host = FakeHost()
    for partition in range(3):
        host.rows[partition] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 0), (1, 0), (2, 0), max_bytes=100))
    host.complete(x, 0, **found(500, first=300))
    host.complete(x, 1, **found(50))
    host.complete(x, 2, **found(50))
    assert lengths(host) == {0: 300, 1: 0, 2: 0}


def test_a_home_is_asked_again_about_a_file_that_is_not_there(handler):
    """Retention took the segment between its answer and ours: the second one says what holds."""
    host = FakeHost()
    host.rows[0] = host.rows[1] = (10, 10, 0)
    host.files = False
    x = host.start(handler, 12, fetch((0, 0), (1, 3), min_bytes=500))
    host.complete(x, 1, **found(500))
    host.complete(x, 0, **found(50))
    assert [(ask[0], ask[2] & READ_GONE) for ask in host.asked[2:]] == [
        (0, READ_GONE),
        (1, READ_GONE),
    ]
    host.complete(x, 0, error=errors.OFFSET_OUT_OF_RANGE, a=-1)
    assert host.answer is None
    host.files = True
    host.complete(x, 1, **found(20))
    assert codes(host) == {0: errors.OFFSET_OUT_OF_RANGE, 1: errors.NONE}
    assert lengths(host) == {0: 0, 1: 20}, "answered at once, though it is less than min_bytes"


def test_a_file_that_is_there_for_its_home_and_not_for_us_is_retriable(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    host.files = False
    x = host.start(handler, 12, fetch((0, 0)))
    host.complete(x, 0, **found(50))
    host.complete(x, 0, **found(50))
    row = host.answer.responses[0].partitions[0]
    assert int(row.error_code) == errors.NOT_LEADER_OR_FOLLOWER
    assert not row.records


def test_topic_ids_from_version_13(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 17, fetch((0, 0)))
    host.complete(x, 0, **found(20))
    assert lengths(host) == {0: 20}


def test_a_session_tells_only_news(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 3), (1, 0), session=(0, 0)))
    host.complete(x, 0, **found(50))
    session = host.answer.session_id
    assert session == 100
    assert set(lengths(host)) == {0, 1}

    x = host.start(handler, 12, fetch((0, 10), session=(session, 1), max_wait=0))
    assert lengths(host) == {}, "nothing new, nothing said"

    host.rows[1] = (5, 5, 0)
    x = host.start(handler, 12, fetch(session=(session, 2), max_wait=0))
    host.complete(x, 1 if 1 in x.pending else 0, **found(30, high_watermark=5))
    assert lengths(host) == {1: 30}

    host.start(handler, 12, fetch(session=(session, 3), max_wait=0, forgotten=[1]))
    assert lengths(host) == {}


def test_session_errors_make_the_client_start_again(handler):
    host = FakeHost()
    host.start(handler, 12, fetch((0, 0), session=(4711, 1)))
    assert int(host.answer.error_code) == errors.FETCH_SESSION_ID_NOT_FOUND
    host.start(handler, 12, fetch((0, 0), session=(0, 0), max_wait=0))
    session = host.answer.session_id
    host.start(handler, 12, fetch((0, 0), session=(session, 7)))
    assert int(host.answer.error_code) == errors.INVALID_FETCH_SESSION_EPOCH
    host.start(handler, 17, fetch((0, 0), session=(session, 1)))
    assert int(host.answer.error_code) == errors.FETCH_SESSION_TOPIC_ID_ERROR


def test_epoch_minus_1_opens_no_session(handler):
    host = FakeHost()
    host.start(handler, 12, fetch((0, 0), max_wait=0))
    assert host.answer.session_id == 0


@pytest.mark.parametrize("version", range(4, 12))
def test_old_versions_end_with_the_records(handler, version):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, version, fetch((0, 0)))
    host.complete(x, 0, **found(20))
    assert lengths(host) == {0: 20}


def test_what_a_glance_finds_is_answered_without_asking(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    host.places[0, 3] = (4096, 77, 20)
    host.start(handler, 12, fetch((0, 3)))
    assert not host.asked
    assert lengths(host) == {0: 77}


def test_what_the_home_finds_is_remembered_for_the_next_glance(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 3)))
    host.complete(x, 0, **found(50) | {"d": 2, "g": 640})
    assert host.remembered == [(0, 2, 640, 50)]


@pytest.mark.parametrize("version", range(4, 19))
def test_aborted_transactions_stand_in_the_answer(handler, version):
    """They come in pieces before the range; of a range that is asked for again they come again."""
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, version, fetch((0, 0)) | {"isolation_level": 1})
    wrong, first, second = ([(9, 1)], [(1, 3), (2, 4)], [(1 << 40, 5)])
    host.complete(x, 0, more=True, op=ABORTED, payload=aborted.encode(wrong))
    host.files = False
    host.complete(x, 0, **found(20))
    host.files = True
    host.complete(x, 0, more=True, op=ABORTED, payload=aborted.encode(first))
    host.complete(x, 0, more=True, op=ABORTED, payload=aborted.encode(second))
    host.complete(x, 0, **found(20))
    row = host.answer.responses[0].partitions[0]
    told = [(one.producer_id, one.first_offset) for one in row.aborted_transactions]
    assert told == first + second
    assert len(row.records) == 20
    assert getattr(row, "log_start_offset", 0) == 0


@pytest.mark.parametrize(
    ("stable", "aborted_to", "alone"),
    [(10, 0, False), (10, 1, True), (10, 4, True), (10, 5, False), (9, 1, True)],
    ids=["not known", "none", "up to here", "behind here", "a transaction is open"],
)
def test_who_reads_committed_is_glanced_for_where_nothing_was_aborted(
    handler, stable, aborted_to, alone
):
    host = FakeHost()
    host.rows[0] = (10, stable, 0)
    host.aborted_to = aborted_to
    host.places[0, 3] = (4096, 77, 20)
    host.start(handler, 12, fetch((0, 3)) | {"isolation_level": 1})
    assert bool(host.asked) is not alone


def settled_session(host, handler, end=10):
    """A session of four partitions, the reader at the end of each; its id, next epoch 2."""
    for partition in range(4):
        host.rows[partition] = (end, end, 0)
    everything = [(partition, end) for partition in range(4)]
    host.start(handler, 12, fetch(*everything, session=(0, 0), max_wait=0))
    session = host.answer.session_id
    host.start(handler, 12, fetch(session=(session, 1), max_wait=0))
    assert lengths(host) == {}
    assert host.partitions.looked_at == [], "nothing has moved"
    return session


def test_a_session_looks_only_where_something_moved(handler):
    host = FakeHost()
    session = settled_session(host, handler)
    host.rows[2] = (12, 12, 0)
    host.places[2, 10] = (4096, 77, 20)
    host.start(handler, 12, fetch(session=(session, 2), max_wait=0))
    assert host.partitions.looked_at == [2]
    assert lengths(host) == {2: 77}
    host.start(handler, 12, fetch((2, 12), session=(session, 3), max_wait=0))
    assert host.partitions.looked_at == [2], "where the reader is now, there is nothing"
    host.start(handler, 12, fetch(session=(session, 4), max_wait=0))
    assert host.partitions.looked_at == []


def test_a_log_start_that_moved_is_told_to_who_is_at_the_end(handler):
    host = FakeHost()
    session = settled_session(host, handler)
    host.rows[1] = (10, 10, 7)
    host.start(handler, 12, fetch(session=(session, 2), max_wait=0))
    assert lengths(host) == {1: 0}
    assert host.answer.responses[0].partitions[0].log_start_offset == 7


def test_a_partition_that_goes_offline_is_asked_for_though_its_reader_is_at_the_end(handler):
    host = FakeHost()
    session = settled_session(host, handler)
    host.offline.add(3)
    x = host.start(handler, 12, fetch(session=(session, 2), max_wait=0))
    host.complete(x, 3, error=errors.KAFKA_STORAGE_ERROR, a=-1)
    assert codes(host) == {3: errors.KAFKA_STORAGE_ERROR}


@pytest.mark.parametrize("what", ["routes", "isolation"])
def test_a_session_looks_everywhere_when_routes_or_its_isolation_are_others(handler, what):
    host = FakeHost()
    session = settled_session(host, handler)
    request = fetch(session=(session, 2), max_wait=0)
    if what == "routes":
        host.routing += 1
    else:
        request["isolation_level"] = 1
    host.start(handler, 12, request)
    assert host.partitions.looked_at == [0, 1, 2, 3]
    assert lengths(host) == {}


def test_who_waits_waits_for_partitions_that_had_nothing_too(handler):
    host = FakeHost()
    session = settled_session(host, handler)
    x = host.start(handler, 12, fetch(session=(session, 2)))
    assert x.answer is None
    assert [(ask[0], ask[2] & READ_WAIT) for ask in host.asked] == [
        (index, READ_WAIT) for index in range(4)
    ]
    host.complete(x, 2, **found(40, high_watermark=12))
    assert lengths(host) == {2: 40}, "of the others there is nothing new"
    assert host.cancelled == 1


def test_the_deadline_looks_at_partitions_that_had_nothing_too(handler):
    host = FakeHost()
    session = settled_session(host, handler)
    x = host.start(handler, 12, fetch(session=(session, 2), min_bytes=200))
    host.rows[2] = (12, 12, 0)
    host.publish()
    host.asked.clear()
    handler.expire(host, x)
    assert [(ask[0], ask[2] & READ_WAIT) for ask in host.asked] == [(2, 0)]
    host.complete(x, 2, **found(40, high_watermark=12))
    assert lengths(host) == {2: 40}


def test_an_answer_under_way_goes_on_with_what_it_was_asked(handler):
    """The next request of the session names another offset before the first one is answered."""
    host = FakeHost()
    session = settled_session(host, handler)
    first = host.start(handler, 12, fetch((0, 3), session=(session, 2), min_bytes=500))
    host.start(handler, 12, fetch((0, 10), session=(session, 3), max_wait=0))
    host.asked.clear()
    host.complete(first, 0, **found(20))
    assert (0, 3) in [(ask[0], ask[3]) for ask in host.asked], "it waits where it began"


# A remote store (KIP-405) -------------------------------------------------------------------------

COMES = {**found(0), "i": REMOTE_COMES}


def test_bytes_on_their_way_from_a_remote_store_are_waited_for(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 2), max_wait=0, min_bytes=500))
    host.complete(x, 0, **COMES)
    assert host.scheduled == [host.remote_wait_ms * 1_000_000], "whatever the client would wait"
    assert host.asked[-1][2] & READ_WAIT and host.answer is None
    host.complete(x, 0, **found(50), i=-17)
    assert lengths(host) == {0: 50}, "as much as there is, as Kafka answers"
    assert host.remembered == [], "the next read asks the home"


def test_bytes_that_do_not_come_in_time_are_an_empty_answer(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 2), max_wait=10_000))
    host.complete(x, 0, **COMES)
    assert host.scheduled == [host.remote_wait_ms * 1_000_000]
    handler.expire(host, x)
    assert lengths(host) == {0: 0} and host.failures == []


def test_what_another_partition_has_does_not_wait_for_the_store(handler):
    host = FakeHost()
    host.rows[0] = host.rows[1] = (10, 10, 0)
    x = host.start(handler, 12, fetch((0, 2), (1, 2)))
    host.complete(x, 0, **COMES)
    host.complete(x, 1, **found(40))
    assert lengths(host) == {0: 0, 1: 40}


def test_a_file_of_the_cache_that_is_gone_is_asked_for_again(handler):
    host = FakeHost()
    host.rows[0] = (10, 10, 0)
    host.files = False
    x = host.start(handler, 12, fetch((0, 2)))
    host.complete(x, 0, **found(50), i=-17)
    assert host.asked[-1][2] & READ_GONE
    host.complete(x, 0, **COMES)
    assert lengths(host) == {0: 0} and host.failures == []
