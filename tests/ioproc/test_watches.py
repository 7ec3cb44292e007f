"""Watches: who waits for any of many partitions is told once, as a list would tell it; and what a
home does with them."""

from array import array

import pytest
from core_world import NOW_MS, World, batch
from hypothesis import given
from hypothesis import strategies as st

from appliance.base import errors
from appliance.config import bounds
from appliance.ioproc.partitions import fetch_watches
from appliance.ioproc.partitions.fetch_watches import FetchWatch, FetchWatches, rows_of
from appliance.ring.messages import (
    APPENDED,
    CANCEL,
    NEWS,
    WATCH,
    WATCH_STABLE,
    WATCH_VISIBLE,
    WATCH_WRITTEN,
    Message,
)
from appliance.ring.partition_table import COLUMNS, ROW_MASK

ROWS = st.sets(st.integers(0, 4), max_size=4)
KINDS = st.integers(1, 7)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("watch"), st.integers(0, 1), st.integers(0, 2), KINDS, ROWS),
        st.tuples(st.just("cancel"), st.integers(0, 1), st.integers(0, 2)),
        st.tuples(st.just("drop"), st.integers(0, 1)),
        st.tuples(st.just("grow"), st.dictionaries(st.integers(0, 4), KINDS, max_size=3)),
    ),
    max_size=40,
)


@given(STEPS)
def test_tells_like_a_list(steps):
    kept, twin = FetchWatches(), []  # (peer, request, number, kinds, rows)
    for number, (action, *rest) in enumerate(steps):
        if action == "watch":
            peer, request, kinds, rows = rest
            assert kept.add(FetchWatch(peer, request << 32 | number, kinds, rows))
            twin.append((peer, request, number, kinds, rows))
        elif action == "cancel":
            kept.cancel(rest[0], rest[1] << 32 | 9)
            twin = [one for one in twin if list(one[:2]) != rest]
        elif action == "drop":
            kept.drop_peer(rest[0])
            twin = [one for one in twin if one[0] != rest[0]]
        else:
            told = [
                one
                for one in twin
                if any(row in one[4] and kinds & one[3] for row, kinds in rest[0].items())
            ]
            twin = [one for one in twin if one not in told]
            for row, kinds in rest[0].items():
                kept.moved(row, kinds)
            found = sorted((one.peer, one.token) for one in kept.take_news())
            assert found == sorted((peer, at << 32 | n) for peer, at, n, *_ in told)
        assert len(kept) == len(twin) and kept.waits == bool(twin)
        for row in range(5):
            assert kept.has(row) == any(row in one[4] for one in twin)


def test_a_netproc_has_so_many_and_no_more():
    kept = FetchWatches()
    for number in range(fetch_watches.MOST):
        assert kept.add(FetchWatch(0, number << 32, 1, {1}))
    assert not kept.add(FetchWatch(0, 1 << 50, 1, {1}))
    assert kept.add(FetchWatch(1, 1 << 50, 1, set(range(fetch_watches.MOST_ROWS - 1)))), (
        "another may"
    )
    assert not kept.add(FetchWatch(1, 1 << 51, 1, {1, 2})), "rows are counted too"
    kept.cancel(0, 5 << 32)
    assert kept.add(FetchWatch(0, 1 << 50, 1, {1}))


# In a home ----------------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.add("t", 0)
    world.add("t", 1)
    return world


def watch(world, *handles, token=1 << 32, kinds=WATCH_VISIBLE, peer=0, stale=()):
    """As a netproc that has looked at these rows now; at those of `stale` some time ago."""
    state = world.table.state
    rows = [
        handle << 32 | (state[(handle & ROW_MASK) * COLUMNS] - 2 * (handle in stale)) & 0xFFFFFFFF
        for handle in handles
    ]
    payload = array("Q", rows).tobytes()
    assert rows_of(payload) == rows
    message = Message(WATCH, kinds, 0, token, *[0] * 10, payload)
    world.arrivals.handle(world.core.askers[peer], [message], world.now_ms)


def news(answers):
    """Tokens, with error codes."""
    return [(one.token, one.flags) for one in answers if one.op == NEWS]


def test_the_first_visible_record_is_news_and_told_once(world):
    watch(world, 0, 1)
    assert world.turn() == []
    for handle in (0, 1):
        world.append(handle, batch(b"a"), acks=1)
    told = world.settle()
    assert news(told) == [(1 << 32, 0)], "once for all that grew"
    world.append(0, batch(b"b"), acks=1)
    assert news(world.settle()) == []
    assert not world.served.watches.waits


def test_what_is_watched_is_synced_as_for_a_reader(world):
    """It does not wait for the time that what nobody waits for may stay unseen."""
    watch(world, 0)
    world.append(0, batch(b"a"), acks=1)
    assert [one.op for one in world.turn()] == [APPENDED]
    assert world.threads.outstanding(), "a sync was begun at once"
    world.threads.run_all()
    assert news(world.turn()) == [(1 << 32, 0)]


def test_what_was_written_before_is_synced_for_who_comes_to_watch(world):
    world.append(0, batch(b"a"), acks=1)
    world.turn()
    assert not world.threads.outstanding()
    watch(world, 0)
    world.turn()
    assert world.threads.outstanding()


@pytest.mark.parametrize("stale", [0, 1])
def test_who_looked_before_it_moved_is_told_at_once(world, stale):
    world.append(stale, batch(b"a"), acks=1)
    world.settle()
    watch(world, 0, 1, stale=(stale,))
    assert news(world.turn()) == [(1 << 32, 0)]
    assert len(world.served.watches) == 0


def test_a_partition_that_is_not_here_is_told_at_once(world):
    watch(world, 0, 200)
    assert news(world.turn()) == [(1 << 32, 0)]


def test_an_open_transaction_is_no_news_for_who_reads_committed(world):
    watch(world, 0, kinds=WATCH_STABLE)
    watch(world, 0, kinds=WATCH_VISIBLE, token=2 << 32)
    one = batch(b"a", producer=(7, 0, 0), transactional=True)
    partition = world.core.partitions[0]
    partition.append_own(world.core.askers[1], 0, memoryview(bytearray(one)), NOW_MS)
    world.core.appends.touched[partition] = None
    assert news(world.settle()) == [(2 << 32, 0)]


def test_a_replica_hears_of_what_is_written_in_the_turn_of_it(world):
    watch(world, 0, kinds=WATCH_WRITTEN)
    watch(world, 0, kinds=WATCH_VISIBLE, token=2 << 32)
    world.append(0, batch(b"a"))
    assert news(world.turn()) == [(1 << 32, 0)], "before any sync"
    assert news(world.settle()) == [(2 << 32, 0)]


def test_cancel_and_death_end_it(world):
    watch(world, 0, token=1 << 32)
    watch(world, 0, token=2 << 32)
    watch(world, 0, token=1 << 32, peer=1)
    world.ask(CANCEL, 0, 1 << 32)
    world.core.drop(world.core.askers[1])
    world.append(0, batch(b"a"))
    assert news(world.settle()) == [(2 << 32, 0)]


@pytest.mark.parametrize("what", ["follow", "epoch", "remove", "fail"])
def test_who_serves_it_is_always_news(world, what):
    partition = world.core.partitions[0]
    watch(world, 0, 1)
    if what == "follow":
        world.core.follow(partition, 1)
    elif what == "epoch":
        world.core.lead(partition, 1)
    elif what == "remove":
        world.core.remove(0, world.now_ns)
    else:
        world.core.fail(partition, errors.StorageFailed("a", 5, "broken"))
    assert news(world.turn()) == [(1 << 32, 0)]


def test_beyond_what_may_be_watched_it_is_refused(world):
    for number in range(fetch_watches.MOST):
        watch(world, 0, token=number << 32)
    watch(world, 1, token=1 << 50)
    assert news(world.turn()) == [(1 << 50, errors.THROTTLING_QUOTA_EXCEEDED)]


def test_a_watch_too_many_is_told_and_waits_otherwise(world):
    reached = []
    world.served.reach = lambda bound, why: reached.append((bound, why))
    world.served.watches.most = 2
    for number in range(3):
        watch(world, 0, token=number << 32)
    assert news(world.turn()) == [(2 << 32, errors.THROTTLING_QUOTA_EXCEEDED)]
    ((bound, why),) = reached
    assert bound == bounds.WATCHES and bounds.setting_of(bounds.WATCHES) in why
    watch(world, 1, token=9 << 32, peer=1)
    world.append(1, batch(b"a"), acks=1)
    assert (9 << 32, 0) in news(world.settle()), "others are served"
