"""Requests that other processes take slowly, or not at all: only their own connections wait."""

import pytest

from appliance.ring.messages import APPEND, FORWARD
from appliance.supervisor.layout import MIB, Layout
from tests.netproc.netproc_world import World
from tests.netproc.test_server import produce

AT_ONCE = 4
EACH = 3
SMALL = Layout(arena_bytes=8 * MIB, partition_rows=256, ring_slots=16)


@pytest.fixture
def world(tmp_path):
    settings = {
        "penstock.control.max.requests": str(AT_ONCE),
        "penstock.connection.control.max.requests": str(EACH),
    }
    one = World(tmp_path, settings, layout=SMALL)
    yield one
    one.close()


def describe(client, count=1):
    row = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
    for _ in range(count):
        client.send(32, 1, resources=[row], include_synonyms=False)


def turn_alone(world, times=3):
    """The network process turns; control stands still."""
    for _ in range(times):
        world.now_ns += 1_000_000
        world.sockets()
        world.server.run_once(world.now_ns)


def forwarded(world):
    """What control finds in its ring."""
    found = [one for _, arrived in world.control_links.poll() for one in arrived]
    return [one for one in found if one.op == FORWARD]


def test_produce_goes_on_while_control_takes_nothing(world):
    for _ in range(20):
        describe(world.client(), 30)
    turn_alone(world)
    produce(world.client())
    turn_alone(world)
    assert [one.op for one in world.asked()] == [APPEND]


def test_control_is_asked_a_bounded_number_of_requests_at_a_time(world):
    clients = [world.client() for _ in range(5)]
    describe(clients[0], 30)
    turn_alone(world)
    assert len(forwarded(world)) == EACH
    for client in clients[1:]:
        describe(client, 30)
    turn_alone(world)
    assert len(forwarded(world)) == AT_ONCE - EACH


def test_each_request_that_waited_is_answered_in_its_order(world):
    clients = [world.client() for _ in range(5)]
    for client in clients:
        describe(client, 10)
    numbers = {client: [] for client in clients}
    for _ in range(200):
        world.turn()
        for client in clients:
            while (found := client.answer()) is not None:
                numbers[client].append(found[0])
    assert all(told == list(range(10)) for told in numbers.values())
    world.end()


def test_control_is_not_asked_for_who_has_gone(world):
    clients = [world.client() for _ in range(9)]
    for client in clients:
        describe(client, 30)
    turn_alone(world)
    for connection in list(world.server.shared.open.values()):
        connection.close()
    turn_alone(world)
    assert not world.server._outbox.kept
    for _ in range(3):
        world.turn()
    assert not world.server.exchanges.living
    describe(last := world.client())
    world.turn()
    world.turn()
    assert last.answer() is not None
    world.end()


def test_a_full_ring_holds_back_only_who_asked(world):
    loud, quiet = world.client(), world.client()
    for _ in range(40):
        produce(loud)
    turn_alone(world)
    held = {one.kept for one in world.server.shared.open.values()}
    assert held == {0, 1}, "one connection has one request that the ring has not taken"
    assert quiet.ask(18, 0).error_code == 0
    taken = 0
    for _ in range(10):
        taken += len(world.asked())
        turn_alone(world)
    assert taken == 40
