"""Many connections of one stranger that ask nothing, or half of something: a client of another
address is served."""

import socket

import pytest

from benchmarks import requests
from tests.netproc.netproc_world import READABLE, World

ROOM, MANY = 60, 100
STRANGER, NEWCOMER = "127.0.0.7", "127.0.0.8"


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    one.server.shared.limits.room = ROOM
    one.listener = one.server.listeners[0]
    yield one
    one.close()


def connect(world, source, first=b""):
    sock = socket.create_connection(world.door.getsockname(), 5, (source, 0))
    if first:
        sock.sendall(first)
    world.listener.ready(READABLE)
    world.turn()
    return sock


@pytest.mark.parametrize("first", [b"", b"\0\0\xea\x60\0\x12", b"\0", b"\0\0\0\x0a\0"])
def test_a_newcomer_is_served(world, first):
    strangers = [connect(world, STRANGER, first) for _ in range(MANY)]
    newcomer = connect(world, NEWCOMER, requests.api_versions(7))
    try:
        held = [one.address for one in world.server.shared.open.values()]
        assert held.count(STRANGER) == ROOM * 3 // 4
        world.turn()
        assert newcomer.recv(8)[4:] == b"\0\0\0\7"
    finally:
        for one in [*strangers, newcomer]:
            one.close()
