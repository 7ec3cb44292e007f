"""Requests that arrive side by side and need more memory than there is, and frames that never
end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.netproc.connections.frame_pace import FramePace
from appliance.netproc.transport.transport import READ
from appliance.ring.arena import UNIT
from tests.netproc.floor_plan import WHY, FloorPlan, frame

pytestmark = pytest.mark.interpreted(WHY)

SECOND = 1_000_000_000
HALF_FRAME = (60_000).to_bytes(4, "big") + bytes(8)


@pytest.fixture
def plan():
    one = FloorPlan()
    yield one
    one.close()


def feed_side_by_side(plan, links, piece, frames):
    """As over a link that all of them share: a piece of each in turn, as far as the kernel takes
    it."""
    rest = {connection: (peer, data) for connection, peer, data in links}
    for _ in range(3000):
        for connection, (peer, data) in list(rest.items()):
            try:
                sent = peer.send(data[:piece])
            except BlockingIOError:
                sent = 0
            rest[connection] = peer, data[sent:]
            if not data[sent:]:
                del rest[connection]
        for connection, _, _ in links:
            if plan.mask(connection) & READ:
                connection.ready(READ)
        plan.turn()
        plan.shared.arena.invariants()
        if not rest and len(plan.receiver.frames) == frames:
            return


@pytest.mark.parametrize(("count", "units"), [(40, 5), (6, 30), (12, 17)])
def test_requests_side_by_side_that_need_more_than_there_is_are_all_served(plan, count, units):
    links = [(*plan.pair(), frame(bytes([n]) * units * UNIT)) for n in range(count)]
    feed_side_by_side(plan, links, UNIT, count)
    assert sorted(one[0] for one in plan.receiver.frames) == list(range(count))
    assert not plan.shared.in_line and not plan.shared.hungry
    assert [event for event, _ in plan.complaints if event != "receive-memory-short"] == []


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(
        st.lists(st.integers(8, 30 * UNIT) | st.integers(8, 2 * UNIT), min_size=1, max_size=3),
        min_size=1,
        max_size=12,
    ),
    piece=st.integers(3000, 6 * UNIT),
)
def test_whatever_arrives_side_by_side_is_served(sizes, piece):
    plan = FloorPlan()
    try:
        links = [
            (*plan.pair(), b"".join(frame(bytes([n]) * size) for size in some))
            for n, some in enumerate(sizes)
        ]
        feed_side_by_side(plan, links, piece, sum(map(len, sizes)))
        served = sorted((one[0], len(one)) for one in plan.receiver.frames)
        assert served == sorted((n, size) for n, some in enumerate(sizes) for size in some)
    finally:
        plan.close()
    assert plan.shared.arena.used == 0


def test_half_frames_hold_no_memory_that_a_newcomer_needs(plan):
    crowd = [plan.pair() for _ in range(90)]
    for connection, peer in crowd:
        peer.send(HALF_FRAME)
        connection.ready(READ)
    for n in range(1, 5):
        plan.sweep(n * SECOND, 600 * SECOND, 30 * SECOND)
        for connection, peer in crowd:
            peer.send(b"x")
            connection.ready(READ)
    connection, peer = plan.pair()
    peer.send(frame(b"12345678"))
    connection.ready(READ)
    plan.turn()
    assert plan.receiver.frames == [b"12345678"]


def test_a_frame_that_comes_slower_than_the_least_rate_is_given_up(plan):
    slow, slow_peer = plan.pair()
    fast, fast_peer = plan.pair()
    for n in range(1, 40):
        plan.shared.now_ns = n * SECOND
        for connection, peer, data in ((slow, slow_peer, b"x"), (fast, fast_peer, bytes(1500))):
            if not connection.closed:
                peer.send(HALF_FRAME if n == 1 else data)
                connection.ready(READ)
        plan.sweep(n * SECOND, 600 * SECOND, 30 * SECOND, least_rate=1024)
    assert slow.closed and [event for event, _ in plan.complaints] == ["no-progress"]
    assert not fast.closed


def test_who_waits_for_memory_is_not_taken_for_stuck(plan):
    taken = plan.shared.arena.allocate(60 * UNIT)
    connection, peer = plan.pair()
    peer.send(frame(bytes(20 * UNIT))[:10_000])
    connection.ready(READ)
    connection.ready(READ)
    assert connection in plan.shared.in_line and not plan.mask(connection) & READ
    for n in range(1, 100):
        plan.sweep(n * SECOND, 20 * SECOND, 10 * SECOND, least_rate=1024)
    assert not connection.closed
    plan.shared.arena.free_slab(taken)
    plan.turn()
    assert plan.mask(connection) == READ


def test_who_holds_memory_that_others_wait_for_has_to_go_on(plan):
    holder, holds = plan.pair()
    holds.send(frame(bytes(30 * UNIT))[: 2 * UNIT])
    for _ in range(3):
        holder.ready(READ)
    assert plan.shared.arena.used >= 30 * UNIT
    waiter, waits = plan.pair()
    waits.send(frame(bytes(31 * UNIT))[: 2 * UNIT])
    for _ in range(3):
        waiter.ready(READ)
    assert waiter in plan.shared.in_line
    for n in range(1, 34):
        plan.shared.now_ns = n * SECOND
        if not holder.closed:
            holds.send(bytes(2000))
            holder.ready(READ)
        plan.sweep(n * SECOND, 600 * SECOND, 30 * SECOND, least_rate=1024)
    assert holder.closed and not waiter.closed
    plan.turn()
    assert waiter not in plan.shared.in_line


def test_a_pause_is_made_up_for():
    pace = FramePace(0, 0)
    assert pace.measure_behind_ns(10 * SECOND, 0, 1000) == 10 * SECOND
    assert pace.measure_behind_ns(11 * SECOND, 9000, 1000) == 2 * SECOND
    assert pace.measure_behind_ns(12 * SECOND, 9000 + 10**6, 1000) == 0
    assert pace.measure_behind_ns(20 * SECOND, 5, 1000) == 0, "a new frame"
