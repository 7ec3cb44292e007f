"""Over a quota: the pause is in the answer, then nothing is read for so long."""

from types import SimpleNamespace

import pytest

from appliance.config.broker import BrokerConfig
from appliance.handlers import k00_produce, k01_fetch
from appliance.handlers.exchange import Exchange, FileRange
from appliance.netproc.connections.connection_states import MUTED, OPEN
from appliance.netproc.requests.client_throttling import ClientThrottling
from appliance.netproc.transport.transport import READ
from appliance.quotas.limits import FETCH, KINDS, PRODUCE
from appliance.ring.quota_table import QuotaTable
from appliance.wire.messages import decode_response
from appliance.wire.produce import ProduceRequest, encode
from tests.callers import rights
from tests.netproc.floor_plan import WHY, FloorPlan
from tests.netproc.floor_plan import frame as whole

SECOND = 1_000_000_000
QUOTAS = {(("client-id", "slow"),): {PRODUCE: 1000.0, FETCH: 1000.0}}


pytestmark = pytest.mark.interpreted(WHY)


@pytest.fixture
def plan():
    one = FloorPlan()
    one.shared.now_ns = 50 * SECOND
    yield one
    one.close()


def throttling(lines, quotas=QUOTAS, clock=None):
    memory = memoryview(bytearray(QuotaTable.bytes_needed(1, 11, 8)))
    table = QuotaTable(memory, 1, 11, 8)
    log = SimpleNamespace(
        event=lambda *args, **fields: lines.append((args, fields)), reach=lambda *_: None
    )
    seat = SimpleNamespace(quotas=table, index=0, config=BrokerConfig())
    one = ClientThrottling(seat, log, clock)
    one.configure(quotas, None)
    return one


def exchange(handler, version, connection, size, client="slow"):
    x = Exchange(1, handler, version, 5, rights(client), 0, size, connection)
    x.received = 4 + size
    return x


def frame(text):
    return whole(text.ljust(8, b"."))


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_produce_over_its_quota_is_told_then_not_read(plan, version):
    connection, _ = plan.pair()
    lines = []
    one = throttling(lines)
    assert one.active
    request = ProduceRequest(None, -1, 1000, [], [])
    answer = encode(request, [], version, 0)
    x = exchange(k00_produce.HANDLER, version, connection, 10_500)
    pieces = one.apply(x, [answer], plan.shared.now_ns)
    decoded = decode_response(0, version, pieces[0])
    assert decoded.throttle_time.total_seconds() == 0.5
    assert connection.state == MUTED
    assert not plan.mask(connection) & READ
    (seen,) = plan.clients.connected()
    assert (seen.pause_kind, seen.paused_until_ms) == (KINDS.index(PRODUCE), 50_500)
    assert (seen.paused_ms, seen.pauses) == (500, 1)
    [(event, fields)] = lines
    assert event[1:] == ("quota-exceeded",)
    assert (fields["entity"], fields["quota"]) == ("client-id=slow", PRODUCE)
    assert one.wait_ms(plan.shared.now_ns, 1000) == 500
    plan.shared.now_ns += SECOND // 2
    one.unmute(plan.shared.now_ns)
    assert plan.mask(connection) & READ and one.wait_ms(plan.shared.now_ns, 1000) == 1000
    one.apply(x, [answer], plan.shared.now_ns)
    assert len(lines) == 1, "one line for each entity, not for each answer"


@pytest.mark.parametrize("version", [4, 7, 12, 18])
def test_a_fetch_over_its_quota_is_answered_empty(plan, version):
    connection, _ = plan.pair()
    one = throttling([])
    handler = k01_fetch.handler(None)
    full = [b"head", FileRange(None, 0, 20_000), b"tail"]
    x = exchange(handler, version, connection, 100)
    assert one.apply(x, list(full), plan.shared.now_ns) == full
    assert connection.state == OPEN
    [piece] = one.apply(x, list(full), plan.shared.now_ns)
    decoded = decode_response(1, version, piece)
    assert decoded.throttle_time.total_seconds() > 1 and not decoded.responses
    assert connection.state == MUTED


def test_others_are_left_alone(plan):
    connection, _ = plan.pair()
    one = throttling([])
    x = exchange(k00_produce.HANDLER, 9, connection, 10**9, "fast")
    assert one.apply(x, [b"answer"], plan.shared.now_ns) == [b"answer"]
    assert connection.state == OPEN and plan.mask(connection) & READ
    one.configure({}, None)
    assert not one.active


def test_requests_that_have_come_already_wait_for_the_end_of_the_pause(plan):
    connection, peer = plan.pair()
    plan.receiver.on_request = lambda c: c.mute(plan.shared.now_ns + SECOND)
    peer.sendall(frame(b"one") + frame(b"two") + frame(b"three"))
    connection.ready(READ)
    assert [f.rstrip(b".") for f in plan.receiver.frames] == [b"one"]
    assert not plan.shared.starving, "a muted connection must not keep the loop turning"
    connection.resume()
    assert len(plan.receiver.frames) == 1
    for expected in (b"two", b"three"):
        plan.shared.now_ns += SECOND
        connection.resume()
        assert plan.receiver.frames[-1].rstrip(b".") == expected
    assert len(plan.receiver.frames) == 3


def test_a_muted_connection_is_not_taken_for_one_that_is_stuck(plan):
    connection, peer = plan.pair()
    plan.receiver.on_request = lambda c: c.mute(plan.shared.now_ns + 10 * SECOND)
    peer.sendall(frame(b"one") + frame(b"two"))
    connection.ready(READ)
    plan.shared.now_ns += 9 * SECOND
    plan.sweep(plan.shared.now_ns, SECOND, SECOND)
    assert not connection.closed
    plan.shared.now_ns += 3 * SECOND
    plan.sweep(plan.shared.now_ns, SECOND, SECOND)
    assert connection.closed and [one for one, _ in plan.complaints] == ["no-progress"]


def test_near_its_quota_a_producer_is_served_one_request_at_a_time(plan):
    """Else all that it has under way is read before the first answer can mute it."""
    connection, peer = plan.pair()
    one = throttling([])
    plan.receiver.on_request = lambda c: c.sending.queue.append(None)
    peer.sendall(frame(b"one") + frame(b"two"))
    connection.ready(READ)
    assert len(plan.receiver.frames) == 2, "far from it they go side by side"
    answer = encode(ProduceRequest(None, -1, 1000, [], []), [], 9, 0)
    x = exchange(k00_produce.HANDLER, 9, connection, 6000)
    one.apply(x, [answer], plan.shared.now_ns)
    assert connection.one_by_one and connection.state == OPEN
    connection.sending.queue.clear()
    peer.sendall(frame(b"three") + frame(b"four"))
    connection.ready(READ)
    assert len(plan.receiver.frames) == 3 and connection in plan.shared.starving
    connection.resume()
    assert len(plan.receiver.frames) == 3, "not before it is answered"
    connection.sending.queue.clear()
    connection.resume()
    assert len(plan.receiver.frames) == 4
    one.apply(x, [answer], plan.shared.now_ns + 12 * SECOND)
    assert connection.one_by_one
    x = exchange(k00_produce.HANDLER, 9, connection, 10)
    one.apply(x, [answer], plan.shared.now_ns + 24 * SECOND)
    assert not connection.one_by_one


def test_two_pauses_that_end_at_the_same_moment(plan):
    """Of requests without a number, too: answered at once, such as a refused version."""
    one = throttling([])
    for _ in range(2):
        connection, _ = plan.pair()
        x = exchange(k01_fetch.handler(None), 12, connection, 100, client="slow")
        x.number = -1
        for size in (2_000_000, 100):
            one.apply(x, [FileRange(None, 0, size)], plan.shared.now_ns)
    plan.shared.now_ns = later = plan.shared.now_ns + 3600 * SECOND
    one.unmute(later)
    assert one.wait_ms(later, 100) == 100
