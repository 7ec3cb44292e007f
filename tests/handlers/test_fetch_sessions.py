"""Which fetch session makes room where all slots are taken (KIP-227)."""

import pytest
from fake_host import FakeHost

from appliance.base import errors
from appliance.base.caller import ANONYMOUS, Principal
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.wire.fetch import FetchPartition, FetchRequest


class Cache:
    """Two sessions fit."""

    def __init__(self):
        numbers = iter(range(1, 99))
        self.sessions = FetchSessions(2, lambda: next(numbers))
        self.host = FakeHost()
        self.epochs = {}

    def ask(self, session, epoch, partitions=0, replica=-1, owner=ANONYMOUS):
        rows = [FetchPartition(b"flights", n, 0, 100) for n in range(partitions)]
        request = FetchRequest(replica, -1, 0, 0, 100, False, session, epoch, rows, [])
        return self.sessions.resolve(self.host, request, False, owner)

    def open(self, partitions, replica=-1):
        """Its session's id, 0: it is served without one."""
        code, session, news, found = self.ask(0, 0, partitions, replica)
        assert (code, news, len(found)) == (0, False, partitions)
        if session is None:
            return 0
        self.epochs[session.session_id] = (1, replica)
        return session.session_id

    def use(self, session):
        """True if the session is still there."""
        epoch, replica = self.epochs[session]
        self.epochs[session] = epoch + 1, replica
        code = self.ask(session, epoch, replica=replica)[0]
        assert code in (0, errors.FETCH_SESSION_ID_NOT_FOUND)
        return code == 0

    def wait(self, seconds):
        self.host.now_ns += seconds * 10**9


@pytest.fixture
def cache():
    return Cache()


def test_who_finds_no_room_for_a_session_is_served_without_one(cache):
    first, second = cache.open(1), cache.open(2)
    assert cache.open(3) == 0, "both are young"
    assert cache.use(first)
    assert cache.use(second)


@pytest.mark.parametrize("epoch", [-1, 0, 1, 2])
def test_a_session_is_not_there_for_another_principal(cache, epoch):
    """Whatever epoch it guesses, it neither hears of the partitions nor ends the session."""
    mine = cache.open(2)
    code, session, _, found = cache.ask(mine, epoch, owner=Principal("User", "mallory"))
    assert found == [] and (session is None or session.session_id != mine)
    assert code == (errors.FETCH_SESSION_ID_NOT_FOUND if epoch > 0 else 0)
    assert cache.use(mine), "as if nobody had asked"


def test_a_stale_session_makes_room(cache):
    stale, used = cache.open(3, replica=2), cache.open(1)
    cache.wait(120)
    assert cache.use(used)
    assert cache.open(1) == 0, "it is stale after two minutes, not before"
    cache.wait(1)
    assert cache.open(1)
    assert cache.use(used)
    assert not cache.use(stale)


def test_an_old_session_makes_room_for_a_larger_one(cache):
    large, small = cache.open(3), cache.open(2)
    cache.wait(121)
    assert cache.use(large)
    assert cache.use(small)
    assert cache.open(2) == 0, "it is not larger"
    assert cache.open(3), "a larger one is looked at although another one was refused"
    assert cache.use(large)
    assert not cache.use(small)


def test_a_refusal_holds_for_a_moment_only(cache):
    large, small = cache.open(3), cache.open(2)
    cache.wait(120)
    assert cache.use(large)
    assert cache.use(small)
    assert cache.open(4) == 0, "they are not old enough"
    cache.host.now_ns += 10**6
    assert cache.open(4) == 0
    cache.wait(1)
    assert cache.open(4)


def test_a_follower_takes_the_session_of_a_client(cache):
    large, small = cache.open(9), cache.open(5)
    assert cache.open(1, replica=3)
    assert cache.use(large)
    assert not cache.use(small)
    assert cache.open(1, replica=4)
    assert not cache.use(large)
    assert cache.open(2, replica=5) == 0, "those of followers are young"


def test_the_session_of_a_follower_is_not_taken_by_a_client(cache):
    follower, client = cache.open(1, replica=3), cache.open(5)
    cache.wait(121)
    assert cache.use(follower)
    assert cache.use(client)
    assert cache.open(6)
    assert not cache.use(client)
    assert cache.open(99) == 0, "the other client's is young"
    assert cache.open(2, replica=4), "a larger follower's, or a client's: the client's goes"
    assert cache.use(follower)
    assert len(cache.sessions) == 2
