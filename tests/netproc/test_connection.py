"""A connection over a socket: what it takes, when it stops reading, and how it ends."""

import socket
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.handlers.exchange import Exchange
from appliance.netproc.connections.connection_states import (
    CLOSED,
    DRAINING,
    FINISHING,
    OPEN,
    STARVING,
)
from appliance.netproc.transport.transport import GONE, PEER_ENDED, READ, WRITE
from appliance.ring.arena import UNIT
from tests.callers import rights
from tests.netproc.floor_plan import WHY, FloorPlan, deliver, frame

pytestmark = pytest.mark.interpreted(WHY)


@pytest.fixture
def plan():
    one = FloorPlan()
    yield one
    one.close()


def asked(connection, answer=None):
    x = Exchange(-1, SimpleNamespace(key=1), 0, 0, rights(), 0, 0, connection)
    x.answer = answer
    connection.sending.queue.append(x)
    return x


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(
        st.integers(8, 300) | st.integers(60_000, 70_000) | st.just(500_000), max_size=12
    ),
    hold=st.integers(0, 3),
)
def test_frames_arrive_as_they_were_sent(sizes, hold):
    plan = FloorPlan(hold=hold)
    connection, peer = plan.pair()
    bodies = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    deliver(plan, connection, peer, b"".join(map(frame, bodies)))
    assert plan.receiver.frames == bodies
    plan.receiver.release()
    plan.close()
    assert plan.shared.arena.used == 0, "every slab went back"
    plan.shared.arena.invariants()


def test_who_hangs_up_is_closed(plan):
    connection, peer = plan.pair()
    peer.send(frame(b"12345678"))
    connection.ready(READ)
    waits = asked(connection)
    peer.close()
    connection.ready(GONE)
    assert connection.state == CLOSED and connection.closed
    assert plan.receiver.abandons == [waits]
    assert not plan.shared.open and not plan.loop.masks and not plan.shared.limits.count


def test_who_sends_nothing_more_gets_the_answers_and_is_closed(plan):
    connection, peer = plan.pair()
    first, second = asked(connection), asked(connection)
    peer.sendall(frame(b"12345678") + b"\0\0\0\x30half")
    peer.shutdown(socket.SHUT_WR)
    connection.ready(READ)
    connection.ready(READ)
    assert connection.state == FINISHING and plan.mask(connection) == 0
    assert plan.receiver.frames == [b"12345678"] and plan.shared.arena.used == 0
    connection.mute(plan.shared.now_ns + 1)
    connection.drain()
    first.answer = [b"one"]
    connection.flush()
    assert peer.recv(9) == b"one" and not connection.closed
    second.answer = [b"two"]
    connection.flush()
    assert peer.recv(9) == b"two" and peer.recv(9) == b"" and connection.closed
    assert not plan.receiver.abandons


def test_who_sends_nothing_more_and_asked_nothing_is_closed(plan):
    connection, peer = plan.pair()
    peer.send(b"\0\0\0\x30half")
    peer.shutdown(socket.SHUT_WR)
    connection.ready(READ)
    connection.ready(READ)
    assert connection.closed


def test_who_goes_while_it_is_not_read_is_closed_at_once(plan):
    connection, peer = plan.pair()
    connection.mute(plan.shared.now_ns + 1)
    assert plan.mask(connection) == PEER_ENDED
    peer.close()
    connection.ready(PEER_ENDED)
    assert connection.closed


def test_who_goes_while_it_is_not_read_is_served_what_it_had_sent(plan):
    connection, peer = plan.pair()
    connection.mute(plan.shared.now_ns + 1)
    peer.send(frame(b"12345678"))
    peer.close()
    connection.ready(PEER_ENDED)
    assert not connection.closed and plan.mask(connection) == 0, "the loop must not turn for it"
    plan.shared.now_ns += 2
    connection.resume()
    connection.ready(READ)
    assert plan.receiver.frames == [b"12345678"] and not connection.closed
    connection.ready(READ)
    assert connection.closed


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x7f\xff\xff\xff\x00\x00\x00\x00", "2147483647"),
        (b"\xff\xff\xff\xff\x00\x00\x00\x00", "-1"),
        (b"\x00\x00\x00\x07\x00\x00\x00\x00", "7 bytes"),
    ],
)
def test_bytes_that_are_not_kafka_are_named_and_hung_up_on(plan, data, word):
    connection, peer = plan.pair()
    peer.send(data)
    connection.ready(READ)
    assert connection.closed
    assert word in plan.complaints[0][1]
    if word == "HTTP":
        assert peer.recv(1000).startswith(b"HTTP/1.1 400")


def test_an_exhausted_arena_stops_reading_until_something_is_freed():
    plan = FloorPlan(arena_bytes=8 * UNIT, hold=1)
    connection, peer = plan.pair()
    bodies = [bytes([n]) * 50_000 for n in range(12)]
    deliver(plan, connection, peer, b"".join(map(frame, bodies)))
    assert plan.receiver.frames == bodies
    plan.receiver.release()
    plan.close()


def too_many(plan, connection):
    for _ in range(128):
        asked(connection)
    return connection.sending.queue.clear


def too_long(plan, connection):
    connection.sending.out_bytes = plan.shared.queued_limit + 1
    return lambda: setattr(connection.sending, "out_bytes", 0)


def a_full_ring(plan, connection):
    connection.kept = 1
    return lambda: setattr(connection, "kept", 0)


def too_much_for_control(plan, connection):
    connection.forwarded = plan.shared.forwarded_limit
    return lambda: setattr(connection, "forwarded", 0)


@pytest.mark.parametrize("fill", [too_many, too_long, a_full_ring, too_much_for_control])
def test_what_cannot_be_served_now_is_not_read(plan, fill):
    connection, peer = plan.pair()
    empty = fill(plan, connection)
    peer.send(frame(b"12345678")[:5])
    connection.ready(READ)
    assert connection.state == OPEN, "half a request does no harm"
    peer.send(frame(b"12345678")[5:])
    connection.ready(READ)
    assert not plan.receiver.frames
    assert connection.state == STARVING and not plan.mask(connection) & READ
    plan.turn()
    assert connection.state == STARVING and connection in plan.shared.starving
    empty()
    plan.turn()
    assert plan.receiver.frames == [b"12345678"]
    assert connection.state == OPEN and plan.mask(connection) == READ


def test_a_full_socket_is_watched_until_it_takes_more(plan):
    connection, peer = plan.pair()
    data = bytes(8 << 20)
    asked(connection, [data])
    connection.flush()
    assert plan.mask(connection) == READ | WRITE
    got = 0
    while got < len(data):
        got += len(peer.recv(1 << 20))
        connection.ready(WRITE)
        plan.shared.dirty.clear()
        connection.dirty = False
        connection.flush()
    assert plan.mask(connection) == READ
    assert connection.sending.idle()


def test_at_the_end_what_was_asked_is_answered_and_no_more_is_taken(plan):
    connection, peer = plan.pair()
    idle, _ = plan.pair()
    waits = asked(connection)
    peer.send(frame(b"12345678"))
    for one in (connection, idle):
        one.drain()
        one.drain()
    assert idle.closed and connection.state == DRAINING
    assert not plan.mask(connection) & READ
    connection.ready(READ)
    assert not plan.receiver.frames
    waits.answer = [b"the last"]
    connection.flush()
    assert connection.closed and peer.recv(100) == b"the last"


def test_who_stands_still_in_the_middle_of_something_is_hung_up_on(plan):
    halfway, sender = plan.pair()
    reader, _ = plan.pair()
    waits, _ = plan.pair()
    idle, _ = plan.pair()
    sender.send(b"\x00")
    halfway.ready(READ)
    asked(reader, [bytes(8 << 20)])
    reader.flush()
    asked(waits)
    plan.sweep(10, 20, 10)
    assert len(plan.shared.open) == 4
    plan.sweep(11, 20, 10)
    assert set(plan.shared.open.values()) == {waits, idle}
    assert [event for event, _ in plan.complaints] == ["no-progress"] * 2
    plan.sweep(21, 20, 10)
    assert set(plan.shared.open.values()) == {waits}
