"""A listener is closed while its process runs: who asked is answered and hung up on, who has not is
hung up on at once, and nobody else notices."""

import socket

import pytest

from appliance.ring.process_table import DRAIN
from appliance.shell.handed_connection import HandedConnection
from tests.netproc.netproc_world import World

LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:1,OTHER://127.0.0.1:2",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
}
VERSIONS = {"client_software_name": "c", "client_software_version": "1"}
CONFIGS = {
    "resources": [{"resource_type": 4, "resource_name": "1", "configuration_keys": None}],
    "include_synonyms": False, "include_documentation": False,
}  # fmt: skip
OTHER = 1
LONGEST_MS = 5_000


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path, LISTENERS)
    yield one
    one.close()


def ended(client):
    try:
        return client.sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def close(world):
    world.server.close_listeners([OTHER])


def test_who_has_asked_nothing_is_hung_up_on(world):
    idle, stays = world.client("i", OTHER), world.client("s")
    world.turn()
    close(world)
    assert ended(idle) and not ended(stays)
    assert stays.ask(18, 3, **VERSIONS).error_code == 0
    assert not world.server.connections._ending, "nothing is left of it"


def test_a_request_to_control_is_answered_before_that(world):
    client = world.client("c", OTHER)
    client.send(32, 4, **CONFIGS)
    world.sockets()
    close(world)
    found = None
    for _ in range(20):
        world.turn()
        found = found or client.answer()
    assert found is not None and found[1].results[0].error_code == 0
    assert ended(client)


def test_who_waits_for_long_is_hung_up_on(world):
    """Its fetch is parked, and nobody answers it."""
    client = world.client("c", OTHER)
    topics = [{"topic": "flights", "partitions": [{
        "partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1,
        "log_start_offset": -1, "partition_max_bytes": 1 << 20,
    }]}]  # fmt: skip
    client.send(
        1, 11, replica_id=-1, max_wait=60_000, min_bytes=1, max_bytes=1 << 20, isolation_level=0,
        session_id=0, session_epoch=-1, topics=topics, forgotten_topics_data=[], rack_id="",
    )  # fmt: skip
    world.turn()
    close(world)
    world.turn()
    assert not ended(client)
    world.turn(ms=LONGEST_MS + 1)
    world.turn(ms=1_000)
    assert ended(client)


def test_nobody_comes_in_there_any_more(world):
    address = world.doors[OTHER].getsockname()
    close(world)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def test_a_listener_that_pauses_stays_closed(world):
    world.server._arrivals.shut(world.server.listeners[OTHER], 1_000_000)
    close(world)
    world.turn(ms=10)
    assert not world.server._arrivals.shut_doors


def test_who_is_handed_over_there_is_hung_up_on(world):
    close(world)
    ours, theirs = socket.socketpair()
    with theirs:
        world.server.adopt([HandedConnection(ours, "127.0.0.1", OTHER)])
        assert theirs.recv(1) == b""
    assert not world.server.shared.open


def test_the_end_of_the_process_needs_it_no_more(world):
    close(world)
    world.table.word(DRAIN)[0] = 1
    for _ in range(3):
        world.turn()
    assert world.ended
