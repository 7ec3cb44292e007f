"""Over a quota: the pause is in the answer, then nothing is read for so long."""

import socket
import struct
from types import SimpleNamespace

import pytest

from appliance.config.broker import BrokerConfig
from appliance.handlers import k00_produce, k01_fetch
from appliance.handlers.exchange import Exchange, FileRange
from appliance.netproc.connection import READ, Connection
from appliance.netproc.stopwatch import Stopwatch
from appliance.netproc.throttling import Throttling
from appliance.quotas.limits import FETCH, PRODUCE
from appliance.ring.arena import UNIT, Arena
from appliance.ring.quota_table import QuotaTable
from appliance.wire.messages import decode_response
from appliance.wire.produce import ProduceRequest, encode

SECOND = 1_000_000_000
QUOTAS = {(("client-id", "slow"),): {PRODUCE: 1000.0, FETCH: 1000.0}}


pytestmark = pytest.mark.interpreted("its server is a fake, and a Connection takes a Server only")


class FakeServer:
    def __init__(self):
        self.memory = memoryview(bytearray(64 * UNIT))
        self.arena = Arena(64 * UNIT)
        self.frame_limit = self.queued_limit = 1 << 20
        self.choked = False
        self.watch = Stopwatch(None)
        self.now_ns = 50 * SECOND
        self.starving = {}
        self.frames = []
        self.complaints = []
        self.forgotten = []
        self.on_request = lambda connection: None
        self.loop = SimpleNamespace(modify=lambda fd, mask: None)

    def request(self, connection, position, end):
        self.frames.append(bytes(self.memory[position:end]))
        self.on_request(connection)

    def complain(self, connection, event, why):
        self.complaints.append(event)

    def forget(self, connection):
        self.forgotten.append(connection)


@pytest.fixture
def server():
    return FakeServer()


@pytest.fixture
def wired(server):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield Connection(server, ours, "peer", 0), theirs
    ours.close()
    theirs.close()


def throttling(lines, quotas=QUOTAS, clock=None):
    memory = memoryview(bytearray(QuotaTable.bytes_needed(1, 11, 8)))
    table = QuotaTable(memory, 1, 11, 8)
    log = SimpleNamespace(event=lambda *args, **fields: lines.append((args, fields)))
    seat = SimpleNamespace(quotas=table, index=0, config=BrokerConfig())
    one = Throttling(seat, log, clock)
    one.configure(quotas, None)
    return one


def exchange(handler, version, connection, size, client=b"slow"):
    return Exchange(1, handler, version, 5, client, 0, size, connection)


def frame(text):
    body = text.ljust(8, b".")
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_produce_over_its_quota_is_told_then_not_read(server, wired, version):
    connection, _ = wired
    lines = []
    one = throttling(lines)
    assert one.active
    request = ProduceRequest(None, -1, 1000, [], [])
    answer = encode(request, [], version, 0)
    x = exchange(k00_produce.HANDLER, version, connection, 10_500 - 14 - (version >= 9))
    pieces = one.apply(x, [answer], server.now_ns)
    decoded = decode_response(0, version, pieces[0])
    assert decoded.throttle_time.total_seconds() == 0.5
    assert connection.muted_until_ns == server.now_ns + SECOND // 2
    assert not connection.mask & READ
    [(event, fields)] = lines
    assert event[1:] == ("quota-exceeded",)
    assert (fields["entity"], fields["quota"]) == ("client-id=slow", PRODUCE)
    assert one.wait_ms(server.now_ns, 1000) == 500
    server.now_ns += SECOND // 2
    one.unmute(server.now_ns)
    assert connection.mask & READ and one.wait_ms(server.now_ns, 1000) == 1000
    one.apply(x, [answer], server.now_ns)
    assert len(lines) == 1, "one line for each entity, not for each answer"


@pytest.mark.parametrize("version", [4, 7, 12, 18])
def test_a_fetch_over_its_quota_is_answered_empty(server, wired, version):
    connection, _ = wired
    one = throttling([])
    handler = k01_fetch.handler(None)
    full = [b"head", FileRange(None, 0, 20_000), b"tail"]
    x = exchange(handler, version, connection, 100)
    assert one.apply(x, list(full), server.now_ns) == full
    assert connection.muted_until_ns == 0
    [piece] = one.apply(x, list(full), server.now_ns)
    decoded = decode_response(1, version, piece)
    assert decoded.throttle_time.total_seconds() > 1 and not decoded.responses
    assert connection.muted_until_ns > server.now_ns


def test_others_are_left_alone(server, wired):
    connection, _ = wired
    one = throttling([])
    x = exchange(k00_produce.HANDLER, 9, connection, 10**9, b"fast")
    assert one.apply(x, [b"answer"], server.now_ns) == [b"answer"]
    assert connection.muted_until_ns == 0 and connection.mask & READ
    one.configure({}, None)
    assert not one.active


def test_requests_that_have_come_already_wait_for_the_end_of_the_pause(server, wired):
    connection, peer = wired
    server.on_request = lambda c: c.mute(server.now_ns + SECOND)
    peer.sendall(frame(b"one") + frame(b"two") + frame(b"three"))
    connection.ready(READ)
    assert [f.rstrip(b".") for f in server.frames] == [b"one"]
    assert not server.starving, "a muted connection must not keep the loop turning"
    connection.resume()
    assert len(server.frames) == 1
    for expected in (b"two", b"three"):
        server.now_ns += SECOND
        connection.resume()
        assert server.frames[-1].rstrip(b".") == expected
    assert len(server.frames) == 3


def test_a_muted_connection_is_not_taken_for_one_that_is_stuck(server, wired):
    connection, peer = wired
    server.on_request = lambda c: c.mute(server.now_ns + 10 * SECOND)
    peer.sendall(frame(b"one") + frame(b"two"))
    connection.ready(READ)
    server.now_ns += 9 * SECOND
    connection.sweep(server.now_ns, SECOND, SECOND)
    assert not connection.closed
    server.now_ns += 3 * SECOND
    connection.sweep(server.now_ns, SECOND, SECOND)
    assert connection.closed and server.complaints == ["no-progress"]


def test_near_its_quota_a_producer_is_served_one_request_at_a_time(server, wired):
    """Else all that it has under way is read before the first answer can mute it."""
    connection, peer = wired
    one = throttling([])
    server.on_request = lambda c: c.queue.append(None)
    peer.sendall(frame(b"one") + frame(b"two"))
    connection.ready(READ)
    assert len(server.frames) == 2, "far from it they go side by side"
    answer = encode(ProduceRequest(None, -1, 1000, [], []), [], 9, 0)
    x = exchange(k00_produce.HANDLER, 9, connection, 6000)
    one.apply(x, [answer], server.now_ns)
    assert connection.one_by_one and connection.muted_until_ns == 0
    connection.queue.clear()
    peer.sendall(frame(b"three") + frame(b"four"))
    connection.ready(READ)
    assert len(server.frames) == 3 and connection in server.starving
    connection.resume()
    assert len(server.frames) == 3, "not before it is answered"
    connection.queue.clear()
    connection.resume()
    assert len(server.frames) == 4
    one.apply(x, [answer], server.now_ns + 12 * SECOND)
    assert connection.one_by_one
    x = exchange(k00_produce.HANDLER, 9, connection, 10)
    one.apply(x, [answer], server.now_ns + 24 * SECOND)
    assert not connection.one_by_one


def test_two_pauses_that_end_at_the_same_moment(server):
    """Of requests without a number, too: answered at once, such as a refused version."""
    one = throttling([])
    pairs = [socket.socketpair() for _ in range(2)]
    ends = [end for pair in pairs for end in pair]
    try:
        for ours, _ in pairs:
            connection = Connection(server, ours, "peer", 0)
            x = exchange(k01_fetch.handler(None), 12, connection, 100, client=b"slow")
            x.number = -1
            for size in (2_000_000, 100):
                one.apply(x, [FileRange(None, 0, size)], server.now_ns)
        later = server.now_ns + 3600 * SECOND
        server.now_ns = later
        one.unmute(later)
        assert one.wait_ms(later, 100) == 100
    finally:
        for end in ends:
            end.close()
