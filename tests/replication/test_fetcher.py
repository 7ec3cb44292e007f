"""What a follower asks its leader, and what it makes of the answers: messages alone."""

from random import Random

import pytest

from appliance.base import errors
from appliance.replication.follower import (
    BEGIN,
    NEVER,
    PART,
    REFUSED,
    SOON_MS,
    TAKE,
    Fetcher,
    FetchResult,
    Position,
    parts_at,
)

P, Q, R = (b"t", 0), (b"t", 1), (b"u", 0)


def at(offset, epoch=1, last=1, start=0):
    return Position(epoch, offset, last, start)


def opened(*keys, session=9):
    """A fetcher in a session in which these partitions are at offset 10."""
    fetcher = Fetcher(1000)
    for key in keys:
        fetcher.at(key, at(10))
    fetcher.next_fetch(0)
    answer(fetcher, session=session)
    return fetcher


def answer(fetcher, *told, error=0, session=9, now=0):
    fetcher.answered(error, session, now)
    found = [fetcher.outcome(one, now) for one in told]
    fetcher.taken()
    return found


def test_first_all_of_them_then_only_what_changed():
    fetcher = Fetcher(1000)
    fetcher.at(P, at(10))
    fetcher.at(Q, at(20))
    assert fetcher.next_fetch(0) == (0, 0, [(P, at(10)), (Q, at(20))], [], NEVER)
    assert answer(fetcher, FetchResult(P, 0), FetchResult(Q, 0)) == [TAKE, TAKE]
    fetcher.at(P, at(15))
    assert fetcher.next_fetch(0) == (9, 1, [(P, at(15))], [], NEVER)
    answer(fetcher)
    fetcher.drop(Q)
    fetcher.at(R, at(0, last=-1))
    assert fetcher.next_fetch(0) == (9, 2, [(R, at(0, last=-1))], [Q], NEVER)
    answer(fetcher)
    assert fetcher.next_fetch(0) == (9, 3, [], [], NEVER)


def test_the_session_s_epoch_goes_round_without_0():
    fetcher = opened(P)
    fetcher._epoch = 0x7FFFFFFF
    fetcher.next_fetch(0)
    answer(fetcher)
    assert fetcher.next_fetch(0).session_epoch == 1


@pytest.mark.parametrize(
    ("error", "session", "opens"),
    [
        (errors.FETCH_SESSION_ID_NOT_FOUND, 0, 0),
        (errors.INVALID_FETCH_SESSION_EPOCH, 9, 9),  # the leader closes it then
        (errors.NONE, 0, 0),
        (errors.NONE, 8, 9),
    ],
)
def test_a_session_that_is_no_more_is_opened_anew_at_once(error, session, opens):
    fetcher = opened(P, Q)
    fetcher.at(P, at(11))
    fetcher.next_fetch(0)
    answer(fetcher, error=error, session=session)
    assert fetcher.next_fetch(0) == (opens, 0, [(P, at(11)), (Q, at(10))], [], NEVER)


def test_without_sessions_everything_is_asked_for_each_time():
    fetcher = opened(P, session=0)
    for _ in range(3):
        assert fetcher.next_fetch(0) == (0, 0, [(P, at(10))], [], NEVER)
        assert answer(fetcher, FetchResult(P, 0), session=0) == [TAKE]


def test_an_error_for_all_of_it_is_followed_by_a_pause():
    fetcher = opened(P)
    fetcher.next_fetch(0)
    answer(fetcher, error=errors.UNKNOWN_SERVER_ERROR, now=100)
    assert fetcher.next_fetch(1099) is None
    assert fetcher.due_ms() == 1100
    assert fetcher.next_fetch(1100).partitions == [(P, at(10))]


def test_a_lost_connection_ends_the_session_and_what_was_asked():
    fetcher = opened(P, Q)
    fetcher.next_fetch(0)
    fetcher.lost(100)
    assert fetcher.next_fetch(100) is None
    again = fetcher.next_fetch(fetcher.due_ms())
    assert (again.session_epoch, again.partitions) == (0, [(P, at(10)), (Q, at(10))])


def test_who_is_refused_leaves_the_session_for_a_pause_that_grows():
    fetcher = opened(P, Q)
    now, pauses = 0, []
    for _ in range(9):
        fetcher.next_fetch(now)
        assert answer(fetcher, FetchResult(P, errors.NOT_LEADER_OR_FOLLOWER), now=now) == [REFUSED]
        question = fetcher.next_fetch(now)
        assert (question.partitions, question.forgotten) == ([], [P])
        assert answer(fetcher, FetchResult(P, errors.NOT_LEADER_OR_FOLLOWER), now=now) == [0]
        pauses.append(question.wait_ms)
        assert fetcher.due_ms() == now + question.wait_ms
        now += question.wait_ms
        if len(pauses) < 9:
            question = fetcher.next_fetch(now)
            assert question.partitions == [(P, at(10))]
            fetcher.answered(0, 9, now)
            fetcher.taken()
    assert pauses == [20, 40, 80, 160, 320, 640, 1000, 1000, 1000]
    fetcher.at(P, at(11))  # it came through
    fetcher.next_fetch(now)
    answer(fetcher, FetchResult(P, errors.KAFKA_STORAGE_ERROR), now=now)
    assert fetcher.next_fetch(now).wait_ms == 20


def test_who_was_refused_and_is_asked_for_again_is_named_again():
    """The leader's session has forgotten what it told."""
    fetcher = opened(P)
    fetcher.next_fetch(0)
    answer(fetcher, FetchResult(P, errors.UNKNOWN_LEADER_EPOCH))
    assert fetcher.next_fetch(500).partitions == [(P, at(10))]


def test_an_answer_counts_where_the_partition_was_when_it_was_asked():
    fetcher = opened(P, Q)
    fetcher.at(P, at(12))
    fetcher.next_fetch(0)
    fetcher.at(P, at(12, epoch=2))
    fetcher.hold_partition(Q)
    assert answer(fetcher, FetchResult(P, 0), FetchResult(Q, 0), FetchResult(R, 0)) == [0, 0, 0]


@pytest.mark.parametrize(
    ("told", "what"),
    [
        (FetchResult(P, 0, (0, 5)), PART),
        (FetchResult(P, errors.OFFSET_OUT_OF_RANGE), BEGIN),
    ],
)
def test_whose_log_parts_is_held_until_it_went_back(told, what):
    fetcher = opened(P, Q)
    fetcher.next_fetch(0)
    assert answer(fetcher, told) == [what]
    question = fetcher.next_fetch(0)
    assert (question.partitions, question.forgotten) == ([], [P])
    assert question.wait_ms == SOON_MS
    answer(fetcher)
    fetcher.at(P, at(5))
    assert fetcher.next_fetch(0).partitions == [(P, at(5))]


def test_who_came_while_an_answer_is_due_is_known():
    fetcher = opened(P)
    fetcher.next_fetch(0)
    assert not fetcher.newcomers
    fetcher.at(P, at(10, epoch=2))
    assert fetcher.newcomers
    fetcher.at(P, at(10))
    assert not fetcher.newcomers
    fetcher.at(Q, at(0))
    assert fetcher.newcomers
    fetcher.hold_partition(Q)
    assert not fetcher.newcomers


def test_nothing_is_asked_while_nobody_may_be():
    fetcher = opened(P)
    fetcher.hold_partition(P)
    assert fetcher.next_fetch(0) is None
    assert not fetcher.asked
    assert fetcher.due_ms() == NEVER
    fetcher.at(P, at(10))
    question = fetcher.next_fetch(0)
    assert (question.session_epoch, question.partitions) == (0, [(P, at(10))])


def test_whatever_happens_the_leader_s_session_is_what_the_follower_believes():
    """A twin of the session that only reads the questions."""
    rng = Random(7)
    for _ in range(200):
        fetcher, session, epoch, known, now = Fetcher(100), 0, 0, {}, 0
        for step in range(60):
            now += rng.randrange(30)
            key = rng.choice((P, Q, R))
            what = rng.randrange(4)
            if what == 0:
                fetcher.at(key, at(step))
            elif what == 1:
                fetcher.hold_partition(key)
            elif what == 2:
                fetcher.drop(key)
            question = fetcher.next_fetch(now)
            if question is None:
                continue
            if question.session_epoch == 0:
                known, epoch = {}, 0
            else:
                assert (question.session_id, question.session_epoch) == (session, epoch + 1)
                epoch += 1
            for gone in question.forgotten:
                del known[gone]
            known.update(question.partitions)
            assert known == {
                key: position
                for key, position in fetcher._positions.items()
                if fetcher._pauses.get(key, 0) <= now
            }
            if rng.random() < 0.2:
                fetcher.lost(now)
                continue
            if question.session_epoch == 0:
                session += 1
            code = rng.choice((0, 0, errors.NOT_LEADER_OR_FOLLOWER, errors.OFFSET_OUT_OF_RANGE))
            told = [FetchResult(key, code) for key in known if rng.random() < 0.5]
            answer(fetcher, *told, session=session, now=now)


@pytest.mark.parametrize(
    ("diverging", "mine", "log_end", "to"),
    [
        ((3, 20), (3, 25), 30, 20),  # both have the epoch, the leader less of it
        ((3, 28), (3, 25), 30, 25),  # the leader more: what is behind it here is another's
        ((3, 20), (2, 15), 30, 15),  # it is not known here: what came before ends first
        ((3, 20), (3, 30), 12, 12),
        ((0, 0), (-1, -1), 30, 0),  # nothing is known here
    ],
)
def test_where_logs_part(diverging, mine, log_end, to):
    assert parts_at(diverging, mine, log_end) == to


def test_who_pauses_leaves_the_session_and_comes_back_by_itself():
    fetcher = opened(P, Q)
    fetcher.pause(P, 700)
    asked = fetcher.next_fetch(100)
    assert (asked.partitions, asked.forgotten, asked.wait_ms) == ([], [P], 600)
    assert not fetcher.newcomers, "nobody is given up a question for"
    answer(fetcher, FetchResult(Q, 0))
    fetcher.at(P, at(12))
    assert fetcher.next_fetch(699).partitions == []
    answer(fetcher)
    assert fetcher.due_ms() == 700
    assert fetcher.next_fetch(700).partitions == [(P, at(12))]
    answer(fetcher, FetchResult(P, errors.KAFKA_STORAGE_ERROR), now=700)
    assert fetcher.due_ms() < 800, "it has not failed before"
