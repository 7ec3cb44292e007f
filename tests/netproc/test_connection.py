"""Frames out of a byte stream, whatever the pieces in which it comes, and answers back in order."""

import contextlib
import socket
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.handlers.exchange import FileRange
from appliance.netproc import connection as connection_module
from appliance.netproc.connection import WRITE, Connection
from appliance.netproc.page_cache import PATIENCE_NS, PageCache
from appliance.netproc.stopwatch import Stopwatch
from appliance.ring.arena import UNIT, Arena

pytestmark = pytest.mark.interpreted("its server is a fake, and a Connection takes a Server only")


class FakeServer:
    """Takes frames as a server does; keeps the slab of every `hold`-th one until `release`."""

    def __init__(self, arena_bytes=64 * UNIT, hold=0):
        self.memory = memoryview(bytearray(arena_bytes))
        self.arena = Arena(arena_bytes)
        self.frame_limit = arena_bytes // 2
        self.queued_limit = 1 << 20
        self.choked = False
        self.watch = Stopwatch(None)
        self.now_ns = 0
        self.starving = {}
        self.frames = []
        self.complaints = []
        self.held = []
        self.hold = hold
        self.masks = []
        self.loop = SimpleNamespace(modify=lambda fd, mask: self.masks.append(mask))
        self.forgotten = []
        self.dirty = []
        self.cold = {}
        self.page_cache = PageCache()

    def request(self, connection, position, end):
        self.frames.append(bytes(self.memory[position:end]))
        if self.hold and len(self.frames) % self.hold == 0:
            self.held.append((connection.slab.hold(), position, end, self.frames[-1]))

    def release(self):
        for slab, position, end, frame in self.held:
            assert bytes(self.memory[position:end]) == frame, "held bytes were written over"
            slab.let_go()
        self.held.clear()

    def complain(self, connection, event, why):
        self.complaints.append((event, why))

    def mark_dirty(self, connection):
        self.dirty.append(connection)

    def forget(self, connection):
        self.forgotten.append(connection)


def pair(server):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return Connection(server, ours, "peer", 0), theirs


def deliver(connection, server, peer, data):
    """Push all of `data` through the socket, letting the connection read and resume as the loop
    would."""
    sent = 0
    idle = turns = 0
    while idle < 3:
        turns += 1
        assert turns < 20_000, "the connection is stuck"
        if sent < len(data):
            with contextlib.suppress(BlockingIOError):
                sent += peer.send(data[sent : sent + 300_000])
        before = len(server.frames), connection.end
        if connection in server.starving:
            del server.starving[connection]
            server.release()
            connection.resume()
        else:
            connection.ready(1)
        idle = 0 if (len(server.frames), connection.end) != before or sent < len(data) else idle + 1
        if connection.closed:
            return


def frame(body):
    return len(body).to_bytes(4, "big") + body


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(
        st.integers(8, 300) | st.integers(60_000, 70_000) | st.just(500_000), max_size=12
    ),
    hold=st.integers(0, 3),
)
def test_frames_arrive_as_they_were_sent(sizes, hold):
    server = FakeServer(hold=hold)
    connection, peer = pair(server)
    bodies = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    deliver(connection, server, peer, b"".join(map(frame, bodies)))
    assert server.frames == bodies
    server.release()
    connection.rest()
    connection.close()
    peer.close()
    assert server.arena.used == 0, "every slab went back"
    server.arena.invariants()


def test_byte_by_byte():
    server = FakeServer()
    connection, peer = pair(server)
    for byte in frame(b"12345678") + frame(b"abcdefghij"):
        peer.send(bytes([byte]))
        connection.ready(1)
    assert server.frames == [b"12345678", b"abcdefghij"]
    peer.close()
    connection.ready(1)
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
def test_bytes_that_are_not_kafka_are_named_and_hung_up_on(data, word):
    server = FakeServer()
    connection, peer = pair(server)
    peer.send(data)
    connection.ready(1)
    assert connection.closed
    assert word in server.complaints[0][1]
    if word == "HTTP":
        assert peer.recv(1000).startswith(b"HTTP/1.1 400")
    peer.close()


def test_a_large_length_alone_reserves_little():
    server = FakeServer(arena_bytes=1024 * UNIT)
    connection, peer = pair(server)
    peer.send((30_000_000).to_bytes(4, "big") + b"x" * 100)
    connection.ready(1)
    assert server.arena.used < 1_000_000
    connection.close()
    peer.close()


def test_an_exhausted_arena_stops_reading_until_something_is_freed():
    server = FakeServer(arena_bytes=8 * UNIT, hold=1)
    connection, peer = pair(server)
    bodies = [bytes([n]) * 50_000 for n in range(12)]
    deliver(connection, server, peer, b"".join(map(frame, bodies)))
    assert server.frames == bodies
    server.release()
    connection.close()
    peer.close()


def test_too_many_unanswered_requests_stop_reading():
    server = FakeServer()
    connection, peer = pair(server)
    connection.queue.extend(SimpleNamespace(answer=None) for _ in range(128))
    peer.send(frame(b"12345678"))
    connection.ready(1)
    assert not server.frames
    assert connection in server.starving
    connection.queue.clear()
    server.starving.clear()
    connection.resume()
    assert server.frames == [b"12345678"]
    connection.close()
    peer.close()


def test_answers_go_out_in_the_order_of_the_requests(tmp_path):
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789" * 40_000)
    server = FakeServer()
    connection, peer = pair(server)
    with path.open("rb") as file:
        segment = SimpleNamespace(fd=file.fileno())
        first = SimpleNamespace(answer=None)
        second = SimpleNamespace(answer=[b"head ", FileRange(segment, 10, 300_005), b" tail"])
        connection.queue.extend([first, second])
        connection.flush()
        with pytest.raises(BlockingIOError):
            peer.recv(1)
        first.answer = [b"first "]
        got = b""
        expected = b"first head " + (b"0123456789" * 40_000)[10:300_015] + b" tail"
        while len(got) < len(expected):
            connection.flush()
            got += peer.recv(1 << 20)
    assert got == expected
    assert not connection.out
    assert connection.out_bytes == 0
    connection.close()
    peer.close()


def test_a_large_answer_lets_the_others_have_their_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(connection_module, "_TURN_BYTES", 1000)
    server = FakeServer()
    connection, peer = pair(server)
    (tmp_path / "segment").write_bytes(b"0123456789" * 250)
    with (tmp_path / "segment").open("rb") as file:
        segment = SimpleNamespace(fd=file.fileno())
        connection.queue.append(SimpleNamespace(answer=[FileRange(segment, 0, 2500)]))
        turns = []
        connection.flush()
        while server.dirty:
            turns.append(len(peer.recv(1 << 20)))
            server.dirty.clear()
            connection.flush()
    assert turns == [1000, 1000]
    assert len(peer.recv(1 << 20)) == 500
    assert not connection.out
    connection.close()
    peer.close()


class Disk:
    """A page cache that has the bytes before `there` and notes what it is to fetch."""

    def __init__(self):
        self.there = 0
        self.fetched = []

    def holds(self, fd, position):
        return position < self.there

    def fetch(self, fd, position, length):
        self.fetched.append((position, position + length))


@pytest.fixture
def reader(tmp_path):
    """A connection that is to be sent a file of 2,500 bytes, 1,000 a turn, from a disk."""
    server = FakeServer()
    server.page_cache = disk = Disk()
    server.now_ns = 5
    connection, peer = pair(server)
    (tmp_path / "segment").write_bytes(b"0123456789" * 250)
    with (tmp_path / "segment").open("rb") as file:
        segment = SimpleNamespace(fd=file.fileno())
        connection.queue.append(SimpleNamespace(answer=[FileRange(segment, 0, 2500)]))
        yield server, disk, connection, peer
    connection.close()
    peer.close()


def arrived(peer):
    try:
        return len(peer.recv(1 << 20))
    except BlockingIOError:
        return 0


def test_what_the_page_cache_lacks_is_fetched_and_not_waited_for(reader, monkeypatch):
    monkeypatch.setattr(connection_module, "_TURN_BYTES", 1000)
    server, disk, connection, peer = reader
    connection.flush()
    connection.flush()
    assert arrived(peer) == 0
    assert connection in server.cold
    assert not connection.mask & WRITE, "the loop would spin"
    assert len(disk.fetched) == 1, "asked for once"
    start, end = disk.fetched[0]
    assert start == 0
    assert end >= 2500
    disk.there = 1500
    connection.flush()
    connection.flush()
    assert arrived(peer) == 1000
    disk.there = 2500
    connection.flush()
    connection.flush()
    assert arrived(peer) == 1500
    assert not connection.out


def test_patience_ends(reader):
    server, _, connection, peer = reader
    connection.flush()
    server.now_ns += PATIENCE_NS - 1
    connection.flush()
    assert arrived(peer) == 0
    server.now_ns += 1
    connection.flush()
    assert arrived(peer) == 2500
