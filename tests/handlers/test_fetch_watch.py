"""A fetch that waits for very many partitions: how many messages cross rings for it, and that it
hears of everything that a parked read would have heard of."""

import random

import pytest
from fake_host import FakeHost
from test_fetch_handler import codes, fetch, found, lengths
from test_replica_fetch import LIFE, NODE, pull

from appliance.base import errors
from appliance.handlers import k01_fetch
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.handlers.fetch_watch import A_WATCH, FIRST_WATCH, MOST_BEGUN, MOST_PARKED
from appliance.ring.messages import (
    NEWS,
    READ_REPLICA,
    READ_WAIT,
    WATCH_STABLE,
    WATCH_VISIBLE,
    WATCH_WRITTEN,
)
from appliance.ring.partition_table import COLUMNS
from tests.seeds import each_seed

MANY = 100
assert MANY > MOST_PARKED


@pytest.fixture
def handler():
    numbers = iter(range(100, 200))
    return k01_fetch.handler(FetchSessions(4, lambda: next(numbers)))


def many(count):
    """Of so many partitions with ten records each."""
    host = FakeHost(count)
    host.rows = dict.fromkeys(range(count), (10, 10, 0))
    return host


@pytest.fixture
def host():
    return many(MANY)


def at_the_end(count=MANY):
    return [(index, 10) for index in range(count)]


def consumer(host, handler):
    """A session of which nothing is new, and a fetch of it that waits."""
    host.start(handler, 17, fetch(*at_the_end(host.count), session=(0, 0), max_wait=0))
    session = host.answer.session_id
    host.answer = None
    x = host.start(handler, 17, fetch(session=(session, 1)))
    assert host.answer is None and x.pending
    return x


def follower(host, handler):
    """The same of another replica, of which the home knows where it is."""
    x = host.start(handler, 17, pull(*at_the_end(host.count), session=(0, 0), max_wait=0))
    for index in range(host.count):
        host.complete(x, index, **found(0))
    session = host.answer.session_id
    host.start(handler, 17, pull(session=(session, 1), max_wait=0))
    for asked in (host.asked, host.heard, host.watched):
        asked.clear()
    host.answer = None
    x = host.start(handler, 17, pull(session=(session, 2)))
    assert host.answer is None and x.pending
    return x


def grow(host, *partitions, log_end=11):
    for one in partitions:
        host.rows[one], host.log_ends[one] = (11, 11, 0), log_end
    host.publish()


def tell(host, x, error=0):
    ((number, *_),) = host.watched[-1:]
    host.complete(x, number, op=NEWS, error=error)


def waits(host):
    return [ask[0] for ask in host.asked if ask[2] & READ_WAIT]


# How many messages --------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [consumer, follower])
@pytest.mark.parametrize(
    ("partitions", "reads", "watches"), [(10, 10, 0), (100, 0, 1), (1000, 0, 1)]
)
def test_what_crosses_rings_for_a_fetch_that_waits_and_is_answered(
    handler, who, partitions, reads, watches
):
    """Waiting, and the first of its partitions that grows."""
    host = many(partitions)
    x = who(host, handler)
    assert (len(host.asked), len(host.watched)) == (reads, watches)
    host.asked.clear()
    grow(host, 3)
    if watches:
        tell(host, x)
        assert [ask[0] for ask in host.asked] == [3], "that one is asked for"
        assert not waits(host)
    host.complete(x, 3, **found(50, high_watermark=11))
    assert lengths(host) == {3: 50}
    assert host.cancelled == (reads > 0), "one CANCEL for what is still parked"


def test_partitions_that_grow_together_are_one_piece_of_news(host, handler):
    x = follower(host, handler)
    grow(host, 3, 4, 5)
    tell(host, x)
    assert sorted(ask[0] for ask in host.asked) == [3, 4, 5]
    for index in (4, 3):
        host.complete(x, index, **found(50, high_watermark=11))
        assert host.answer is None, "what came with it goes with it"
    host.complete(x, 5, **found(60, high_watermark=11))
    assert lengths(host) == {3: 50, 4: 50, 5: 60}


def test_a_consumer_goes_on_where_it_was_without_asking(host, handler):
    host.leader_epoch = 5
    x = consumer(host, handler)
    host.places = {(3, 10): (70, 50, 50)}
    grow(host, 3)
    tell(host, x)
    assert lengths(host) == {3: 50} and not host.asked


def test_in_another_epoch_it_asks(host, handler):
    host.leader_epoch = 5
    x = consumer(host, handler)
    host.places = {(3, 10): (70, 50, 50)}
    host.leader_epoch = 6
    grow(host, 3)
    tell(host, x)
    assert host.answer is None and 3 in x.pending


def test_what_it_goes_on_with_waits_for_what_is_asked_for(host, handler):
    host.leader_epoch = 5
    x = consumer(host, handler)
    host.places = {(3, 10): (70, 50, 50)}
    grow(host, 3, 4)
    tell(host, x)
    assert host.answer is None and [ask[0] for ask in host.asked] == [4]
    host.complete(x, 4, **found(60, high_watermark=11))
    assert lengths(host) == {3: 50, 4: 60}


def test_very_many_are_watched_in_several_messages(handler):
    host = many(A_WATCH + 4)
    consumer(host, handler)
    assert [len(rows) for *_, rows in host.watched] == [A_WATCH, 4]
    assert [number for number, *_ in host.watched] == [FIRST_WATCH, FIRST_WATCH + 1]


# What is watched ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("isolation", "kinds"), [(0, WATCH_VISIBLE), (1, WATCH_STABLE)], ids=["all", "committed"]
)
def test_rows_are_named_with_the_versions_that_were_seen(host, handler, isolation, kinds):
    host.start(handler, 17, fetch(*at_the_end()) | {"isolation_level": isolation})
    ((_, home, flags, rows),) = host.watched
    assert (home, flags) == (0, kinds)
    versions = [host.partitions.state[index * COLUMNS] for index in range(MANY)]
    assert rows == [index << 32 | version for index, version in enumerate(versions)]


def test_who_wants_more_than_a_byte_goes_on_watching_what_has_none(host, handler):
    x = host.start(handler, 17, fetch(*at_the_end(), min_bytes=100))
    grow(host, 3)
    tell(host, x)
    host.complete(x, 3, **found(50, high_watermark=11))
    assert host.answer is None and waits(host) == [3]
    assert [row >> 32 for row in host.watched[-1][3]] == [one for one in range(MANY) if one != 3]
    grow(host, 4)
    tell(host, x)
    host.complete(x, 4, **found(60, high_watermark=11))
    assert sum(lengths(host).values()) == 110 and host.cancelled == 1


def test_what_moves_again_and_again_is_parked_in_the_end(host, handler):
    """Rows behind an open transaction are no news, and each watch costs as much as it names."""
    x = consumer(host, handler)
    for log_end in range(MOST_BEGUN):
        host.log_ends[3] = 20 + log_end
        host.publish()
        tell(host, x)
    assert waits(host) == list(range(MANY)) and len(host.watched) == MOST_BEGUN
    assert host.answer is None


def test_homes_hear_of_each_position_once_and_only_of_changes(host, handler):
    x = host.start(handler, 17, pull(*at_the_end(), session=(0, 0)))
    assert len(host.heard) == MANY, "nobody knew where it is"
    handler.expire(host, x)
    for index in range(MANY):  # none has said that it looked
        host.complete(x, index, **found(0, high_watermark=6))
    session = host.answer.session_id
    host.asked.clear()
    host.heard.clear()
    host.start(handler, 17, pull((7, 10), session=(session, 1)))
    assert host.heard == [(7, (NODE, LIFE), 3, 1)]
    assert waits(host) == [7]
    ((_, _, flags, rows),) = host.watched
    assert flags == WATCH_WRITTEN
    assert [row >> 32 for row in rows] == [one for one in range(MANY) if one != 7]


def test_where_consumers_read_from_it_a_high_watermark_is_news(host, handler):
    host.rack = b""
    x = follower(host, handler)
    ((_, _, flags, _),) = host.watched
    assert flags == WATCH_WRITTEN | WATCH_VISIBLE
    grow(host, 3, log_end=10)
    tell(host, x)
    assert host.answer is None
    assert waits(host) == [3] and host.waits_for[-1] == 11, "it waits for what is there"
    host.complete(x, 3, **found(0, high_watermark=11))
    assert lengths(host) == {3: 0}


def test_one_that_it_was_not_told_is_asked_for(host, handler):
    host.rack = b""
    follower(host, handler)
    host.asked.clear()
    grow(host, 3)
    host.start(handler, 17, pull((3, 11), session=(100, 3)))
    assert waits(host) == [3] and host.waits_for[-1] == 11, "when there is more than it was told"


def test_elsewhere_it_waits_for_records_and_goes_with_them(host, handler):
    host.rows[3], host.log_ends[3] = (9, 9, 0), 10
    x = follower(host, handler)
    host.rows[3] = (10, 10, 0)
    host.publish()
    tell(host, x)
    assert host.answer is None and not host.asked and len(host.watched) == 2
    grow(host, 4)
    tell(host, x)
    host.complete(x, 4, **found(50, high_watermark=11))
    assert lengths(host) == {3: 0, 4: 50}
    (topic,) = host.answer.responses
    assert {one.partition_index: one.high_watermark for one in topic.partitions} == {3: 10, 4: 11}


# What ends it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [consumer, follower])
@pytest.mark.parametrize(
    "code", [errors.NOT_LEADER_OR_FOLLOWER, errors.KAFKA_STORAGE_ERROR, errors.FENCED_LEADER_EPOCH]
)
def test_an_error_ends_it(host, handler, who, code):
    x = who(host, handler)
    grow(host, 3)
    tell(host, x)
    host.complete(x, 3, error=code, a=-1)
    assert codes(host) == {3: code}


@pytest.mark.parametrize("who", [consumer, follower])
def test_the_death_of_the_home_ends_it(host, handler, who):
    x = who(host, handler)
    host.lose(x, FIRST_WATCH)
    assert codes(host) == {0: errors.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.parametrize("who", [consumer, follower])
def test_so_it_does_while_what_moved_is_asked_for(host, handler, who):
    x = who(host, handler)
    grow(host, 3, 4)
    tell(host, x)
    host.complete(x, 3, **found(50, high_watermark=11))
    host.lose(x, 4)
    assert codes(host) == {3: 0, 4: errors.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.parametrize("who", [consumer, follower])
def test_max_wait_ends_it(host, handler, who):
    x = who(host, handler)
    assert host.scheduled
    handler.expire(host, x)
    assert lengths(host) == {} and host.cancelled == 1 and not x.pending


def test_max_wait_ends_it_while_what_moved_is_asked_for(host, handler):
    x = consumer(host, handler)
    grow(host, 3)
    tell(host, x)
    handler.expire(host, x)
    assert [ask[0] for ask in host.asked] == [3, 3], "once more, and without waiting"
    host.complete(x, 3, **found(50, high_watermark=11))
    assert lengths(host) == {3: 50}


# What does not ------------------------------------------------------------------------------------


def test_news_that_turn_out_to_be_none_are_waited_for_at_the_partition(host, handler):
    x = consumer(host, handler)
    grow(host, 3)
    tell(host, x)
    host.complete(x, 3, **found(0, high_watermark=10))
    assert host.answer is None
    assert waits(host) == [3]
    (*_, first), (*_, again) = host.watched
    assert [row >> 32 for row in again] == [row >> 32 for row in first if row >> 32 != 3]
    host.complete(x, 3, **found(50, high_watermark=11))
    assert lengths(host) == {3: 50}


@pytest.mark.parametrize("error", [errors.NONE, errors.THROTTLING_QUOTA_EXCEEDED])
def test_a_home_that_does_not_watch_is_asked_for_each(host, handler, error):
    """It has too much to watch; or a partition is not open there, and its row tells nothing."""
    x = consumer(host, handler)
    tell(host, x, error=error)
    assert waits(host) == list(range(MANY)) and len(host.watched) == 1
    host.complete(x, 3, **found(50, high_watermark=11))
    assert lengths(host) == {3: 50}


def test_a_parked_read_that_is_answered_meanwhile_goes_with_it(host, handler):
    x = follower(host, handler)
    session = 100
    handler.expire(host, x)
    host.answer = None
    x = host.start(handler, 17, pull((7, 10), session=(session, 3)))
    grow(host, 3)
    tell(host, x)
    host.complete(x, 7, **found(40, high_watermark=11))
    assert host.answer is None
    host.complete(x, 3, **found(50, high_watermark=11))
    assert lengths(host) == {3: 50, 7: 40}
    assert all(ask[2] & READ_REPLICA for ask in host.asked)


def test_a_replica_that_was_refused_tells_again_where_it_is(host, handler):
    x = follower(host, handler)
    host.leader_epoch = 6
    grow(host, 3, log_end=10)
    tell(host, x)
    host.complete(x, 3, error=errors.UNKNOWN_LEADER_EPOCH, a=-1)
    host.leader_epoch = 5
    grow(host, 3, log_end=10)
    host.asked.clear()
    host.answer = None
    host.start(handler, 17, pull(session=(100, 3)))
    assert waits(host) == [3]


@pytest.mark.parametrize("who", [consumer, follower])
def test_where_somebody_leads_in_another_epoch_the_home_is_asked(host, handler, who):
    host.leader_epoch = 6
    who(host, handler)
    assert len(waits(host)) == MANY and not host.watched


@pytest.mark.parametrize("who", [consumer, follower])
def test_max_wait_ends_it_while_a_home_says_what_became_of_one(host, handler, who):
    x = who(host, handler)
    host.offline = {3}
    host.publish()
    tell(host, x)
    handler.expire(host, x)
    assert [ask[0] for ask in host.asked] == [3, 3], "once more, and without waiting"
    host.complete(x, 3, error=errors.KAFKA_STORAGE_ERROR, a=-1)
    assert codes(host) == {3: errors.KAFKA_STORAGE_ERROR}


@pytest.mark.parametrize("who", [consumer, follower])
@each_seed(60)
def test_whatever_happens_it_is_answered_once(host, handler, who, seed):
    chance = random.Random(seed)
    x = who(host, handler)

    def happens():
        one = chance.randrange(MANY)
        host.offline ^= {one} if chance.random() < 0.1 else set()
        host.leader_epoch = chance.choice((5, 5, 5, 6))
        host.log_ends[one] = 10 + chance.randrange(3)
        if chance.random() < 0.3:
            grow(host, one, log_end=chance.choice((10, 11)))
        host.publish()

    def answers():
        index = chance.choice(list(x.pending))
        if index >= FIRST_WATCH:
            error = errors.THROTTLING_QUOTA_EXCEEDED if chance.random() < 0.1 else errors.NONE
            host.complete(x, index, op=NEWS, error=error)
        elif chance.random() < 0.2:
            host.complete(x, index, error=errors.NOT_LEADER_OR_FOLLOWER, a=-1)
        else:
            host.complete(x, index, **found(chance.choice((0, 0, 50)), high_watermark=11))

    for _ in range(40):
        step = chance.choice((happens, answers, answers))
        step()
        if chance.random() < 0.05 and x.pending:
            host.lose(x, chance.choice(list(x.pending)))
        if host.answer is None and chance.random() < 0.05:
            handler.expire(host, x)
        if host.answer is not None:
            break
    while host.answer is None:
        assert x.pending, "it waits for somebody"
        handler.expire(host, x)
    assert not x.pending and not x.state.watches and not x.state.looking
