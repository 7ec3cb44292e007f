"""Whether a node believes itself cut off, by what it hears."""

import pytest

from appliance.replication.isolation import UNKNOWN, Isolation

LEASE_MS, FETCH_MS, TWICE_MS = 3000, 1500, 50


@pytest.fixture
def isolation():
    made = Isolation(LEASE_MS, FETCH_MS)
    made.is_isolated(1000, 1000, fetched=True)
    return made


def looks(isolation, until_ms, answered_ms=1000, *, fetched=False):
    """A look each 50 ms; when it found itself isolated first, or None."""
    for now_ms in range(1050, until_ms + 1, 50):
        if isolation.is_isolated(now_ms, answered_ms, fetched=fetched):
            return now_ms
    return None


def test_who_hears_neither_the_controller_nor_a_replica_is_isolated(isolation):
    assert looks(isolation, 20_000) == 1000 + LEASE_MS + TWICE_MS


def test_one_look_is_not_enough(isolation):
    assert not isolation.is_isolated(60_000, 1000, fetched=False), "an answer may lie there unread"
    assert isolation.is_isolated(60_000 + TWICE_MS, 1000, fetched=False)
    assert not isolation.is_isolated(60_100, 60_090, fetched=False)
    assert not isolation.is_isolated(80_000, 60_090, fetched=False), (
        "the same after it was heard again"
    )


def test_a_cluster_without_a_controller_goes_on(isolation):
    assert looks(isolation, 60_000, fetched=True) is None


def test_a_controller_that_answers_decides_who_is_in_sync(isolation):
    for now_ms in range(1050, 60_000, 50):
        assert not isolation.is_isolated(now_ms, now_ms - 2000, fetched=False)


def test_a_replica_that_fetched_just_now_is_a_witness(isolation):
    assert not isolation.is_isolated(10_000, 1000, fetched=True)
    assert not isolation.is_isolated(10_000 + FETCH_MS - 1, 1000, fetched=False)
    assert not isolation.is_isolated(10_000 + FETCH_MS, 1000, fetched=False)
    assert isolation.is_isolated(10_000 + FETCH_MS + TWICE_MS, 1000, fetched=False)
    assert not isolation.is_isolated(20_000, 1000, fetched=True), "it is heard again"


def test_who_was_never_answered_is_not_isolated(isolation):
    assert looks(isolation, 60_000, UNKNOWN) is None
