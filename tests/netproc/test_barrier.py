"""An exception in any hook of any handler, or of a connection, costs one connection: another one
is served by the same process, and nothing that the first one held is left."""

from dataclasses import replace

import pytest

from appliance.handlers.registry import controllers_handlers
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connection_sweep import ConnectionSweep
from appliance.netproc.limits.connection_rate import ConnectionRate
from appliance.netproc.requests.intake import Intake
from appliance.netproc.transport.tls_listeners import TlsListeners
from appliance.ring.messages import APPEND, APPENDED
from tests.netproc.netproc_world import World
from tests.netproc.test_server import produce_body

BODY = b"\0" * 16
PLANTED = pytest.mark.interpreted("plants exceptions in handlers and connections")


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def served(world):
    """Every handler of the registries, which are put into the first listener."""
    found = world.server.connections._receiver._handlers[0]
    for key, handler in controllers_handlers().items():
        found.setdefault(key, handler)
    return found


def fail(*args):
    raise KeyError("planted")


def bugs(world):
    with open(f"/proc/self/fd/{world.fd}") as said:
        return [line for line in said if " bug " in line]


def goes_on(world, other):
    """The other connection is served, and nothing of the first one is left."""
    assert other.ask(18, 0).error_code == 0
    assert not world.server.exchanges.living and not world.server.exchanges.lost


def hung_up(world, client):
    for _ in range(3):
        world.turn(ms=1000)
    try:
        while client.sock.recv(1 << 16):
            pass
    except ConnectionResetError:  # what it had sent was not read
        pass
    except BlockingIOError:
        return False
    return True


def waits(host, x):
    """Has asked an I/O process, and is told in this process that a wait is over."""
    host.ask_home(x, 0, host.route(b"flights", 0, by_id=False), APPEND, 0, x.position, 0, 8, 1)
    host.later(x, 1, 0)


def begins_badly(host, x):
    waits(host, x)
    fail()


def loses(host, x):
    host.hold_pending(x, 0)
    host._exchanges.lose(x, 0)


def has_deadline(host, x):
    host.hold_pending(x, 0)
    x.deadline_ns = host.now_ns
    host.schedule(x)


HOOKS = {
    "begin": {"begin": fail},
    "begin, having asked": {"begin": begins_badly},
    "complete": {"begin": waits, "complete": fail},
    "complete, of what is lost": {"begin": loses, "complete": fail},
    "expire": {"begin": has_deadline, "expire": fail},
}


@PLANTED
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_of_any_handler_that_raises_costs_its_connection(world, hook):
    handlers = served(world)
    other = world.client()
    for key, handler in sorted(handlers.items()):
        handlers[key] = replace(handler, **HOOKS[hook])
        client = world.client()
        client.send_body(key, handler.lowest, BODY)
        assert hung_up(world, client), handler.name
        client.close()
        for one in world.asked():
            if one.op == APPEND:
                world.tell(APPENDED, one.token)
        handlers[key] = handler
        world.turn()
        goes_on(world, other)
    assert world.server.shared.limits.count == 1
    assert len(bugs(world)) >= len(handlers) and all("planted" in line for line in bugs(world))
    world.end()


@PLANTED
def test_memory_of_an_exchange_that_failed_is_held_until_nobody_reads_it(world):
    """Of two batches the answer to the first one fails: the I/O process may still read the second
    one's bytes."""
    handlers = served(world)
    produce = handlers[0]

    def two(host, x):
        for index in range(2):
            host.ask_home(x, index, host.route(b"flights", 0, by_id=False), APPEND, 0, 0, 0, 8, 1)

    handlers[0] = replace(produce, begin=two, complete=fail)
    client, other = world.client(), world.client()
    client.send_body(0, 9, produce_body())
    world.turn()
    first, second = world.asked()
    world.tell(APPENDED, first.token)
    assert hung_up(world, client)
    assert len(world.server.exchanges.living) == 1
    world.server.exchanges.check()
    assert world.server.shared.arena.used
    world.turn(ms=2000)  # the look once a second, at what is held too
    world.tell(APPENDED, second.token)
    world.turn()
    goes_on(world, other)
    world.end()


@PLANTED
def test_a_cause_is_told_with_its_traceback_once(world):
    handlers = served(world)
    handlers[3] = replace(handlers[3], begin=fail)
    for _ in range(20):
        client = world.client()
        client.send_body(3, 0, BODY)
        assert hung_up(world, client)
    told = bugs(world)
    assert "Traceback" in told[0] and len(told) < 20
    assert not any("Traceback" in line for line in told[1:])


CONNECTIONS = {
    Intake: ["request", "_identify", "level"],
    Connection: ["ready", "_receive", "_take", "flush", "resume"],
    ConnectionSweep: ["sweep"],
}


@PLANTED
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in CONNECTIONS.items() for name in names]
)
def test_what_fails_of_a_connection_costs_that_connection(world, monkeypatch, kind, name):
    """In a turn of its own, in one of the loop, or once a second."""
    client, other = world.client("bad"), world.client()
    other.ask(18, 0)
    (bad,) = (one for one in world.server.shared.open.values() if one.sending.requests == 0)
    usual = getattr(kind, name)

    def fails(self, *args):
        one = self if kind is Connection else args[0]
        if one is bad:
            raise ValueError("planted")
        return usual(self, *args)

    monkeypatch.setattr(kind, name, fails)
    if name == "resume":
        world.server.shared.starving[bad] = None
    if name == "level":
        world.server.shared.applied -= 1
    client.send(18, 0)
    world.turn()
    world.turn(ms=2000)
    assert hung_up(world, client)
    goes_on(world, other)
    assert len(bugs(world)) == 1
    monkeypatch.setattr(kind, name, usual)
    world.end()


@PLANTED
@pytest.mark.parametrize("name", ["_agree", "__init__"])
def test_a_connection_that_cannot_begin_leaves_nothing(world, monkeypatch, name):
    other = world.client()
    with monkeypatch.context() as planted:
        planted.setattr(Connection, name, fail)
        try:
            client = world.client()
        except KeyError as bug:  # the loop's to tell
            world.server.failed(world.server.listeners[0], bug)
            client = world.clients[-1]
        assert hung_up(world, client)
    assert world.server.shared.limits.count == len(world.server.shared.open) == 1
    assert len(bugs(world)) == 1
    goes_on(world, other)
    assert world.client().ask(18, 0).error_code == 0


@PLANTED
@pytest.mark.parametrize(
    ("kind", "name"), [(TlsListeners, "reload_changed"), (ConnectionRate, "reopen_due")]
)
def test_a_chore_that_fails_is_told_and_others_are_done(world, monkeypatch, kind, name):
    other = world.client()
    world.server._shut_doors.append((1 << 62, 0, world.server.listeners[0]))
    monkeypatch.setattr(kind, name, fail)
    for _ in range(3):
        world.turn(ms=1500)
        goes_on(world, other)
    assert len(bugs(world)) >= 1
    world.server._shut_doors.clear()
