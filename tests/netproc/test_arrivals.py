"""New connections against their rates, with a clock of our own."""

import select
from types import SimpleNamespace

import pytest

from appliance.netproc.limits.connection_limits import ConnectionLimits
from appliance.netproc.limits.connection_rate import ConnectionRate
from appliance.quotas.limits import CONNECTION, IP
from appliance.quotas.meters import Meters
from appliance.quotas.window import Windows
from appliance.ring.quota_table import QuotaTable

SECOND = 1_000_000_000


class Socket:
    closed = False

    def close(self):
        self.closed = True

    def fileno(self):
        return 7


class World:
    def __init__(self, quotas, arrivals=None):
        memory = memoryview(bytearray(QuotaTable.bytes_needed(1, 11, 8)))
        meters = Meters(QuotaTable(memory, 1, 11, 8), 0, Windows())
        meters.configure(quotas, arrivals)
        self.now = 100 * SECOND
        self.masks = []
        self.lines = []
        self.limits = ConnectionLimits()
        self.limits.set(1000, 1000, {})
        loop = SimpleNamespace(modify=lambda fd, mask: self.masks.append(mask))
        log = SimpleNamespace(
            event_from=lambda *args, **_: self.lines.append(args[1]),
            event_seldom=lambda *args, **_: self.lines.append(args[1]),
        )
        clock = SimpleNamespace(monotonic_ns=lambda: self.now)
        self.arrivals = ConnectionRate(meters, self.limits, loop, clock, log)
        self.door = SimpleNamespace(sock=Socket())


@pytest.fixture
def held():
    return World({((IP, None),): {CONNECTION: 2.0}})


def test_an_address_that_is_too_fast_is_held_and_then_hung_up_on(held):
    come = [Socket() for _ in range(23)]
    let_in = [held.arrivals.let_in(sock, "10.0.0.1") for sock in come]
    assert let_in == [True] * 20 + [False] * 3
    assert held.limits.count == 20
    assert held.arrivals.let_in(Socket(), "10.0.0.2"), "each address for itself"
    assert not any(sock.closed for sock in come)
    wait = held.arrivals.wait_ms(held.now, 10_000)
    assert 0 < wait <= 1000
    held.now += wait * 1_000_000
    held.arrivals.reopen_due(held.now)
    assert [sock.closed for sock in come] == [False] * 20 + [True] * 3
    assert held.arrivals.wait_ms(held.now, 10_000) == 10_000
    held.now += 11 * SECOND
    assert held.arrivals.let_in(Socket(), "10.0.0.1")
    assert set(held.lines) == {"connection-throttled"}


def test_no_more_are_held_than_a_process_can_bear(held):
    come = [Socket() for _ in range(2000)]
    for sock in come:
        held.arrivals.let_in(sock, "10.0.0.1")
    assert sum(sock.closed for sock in come) == 2000 - 20 - 1024


def test_over_the_rate_of_the_broker_a_listener_waits_and_nobody_is_refused():
    world = World({}, arrivals=3.0)
    for _ in range(30):
        assert world.arrivals.let_in(Socket(), "10.0.0.1") and world.arrivals.accept_next(
            world.door
        )
    assert world.arrivals.let_in(Socket(), "10.0.0.1")
    assert not world.arrivals.accept_next(world.door)
    assert world.masks == [0]
    wait = world.arrivals.wait_ms(world.now, 10_000)
    assert 0 < wait <= 1000
    world.arrivals.reopen_due(world.now)
    assert world.masks == [0]
    world.arrivals.reopen_due(world.now + wait * 1_000_000)
    assert world.masks == [0, select.EPOLLIN]


def test_nobody_who_is_full_counts_as_come_in():
    world = World({})
    world.limits.set(1, 1000, {})
    first, second = Socket(), Socket()
    assert world.arrivals.let_in(first, "10.0.0.1")
    assert not world.arrivals.let_in(second, "10.0.0.1")
    assert second.closed and world.lines == ["connection-refused"]
