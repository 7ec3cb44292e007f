"""IPv4 clients of a listener for every interface, which the kernel shows as `::ffff:a.b.c.d`."""

import socket

import pytest

from appliance.quotas.limits import CONNECTION, IP, Limits
from appliance.shell.handed_connection import HandedConnection
from tests.netproc.netproc_world import World

READABLE = 1


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path, {"max.connections.per.ip.overrides": "::ffff:127.0.0.1:2,::1:3"})
    one.door.close()
    both = socket.socket(socket.AF_INET6)
    both.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    both.bind(("::", 0))
    both.listen()
    both.setblocking(False)
    one.door = one.server.listeners[0].sock = both
    yield one
    one.close()


def connect(world, host):
    sock = socket.create_connection((host, world.door.getsockname()[1]), 5)
    world.server.listeners[0].ready(READABLE)
    return sock


def addresses(world):
    return sorted(one.address for one in world.server.shared.open.values())


def test_they_are_known_and_limited_by_their_ipv4_address(world):
    peers = [connect(world, "127.0.0.1") for _ in range(4)]
    peers += [connect(world, "::1") for _ in range(4)]
    try:
        assert addresses(world) == ["127.0.0.1"] * 2 + ["::1"] * 3
        reached = [one.transport.address()[0] for one in world.server.shared.open.values()]
        assert sorted(reached) == ["127.0.0.1"] * 2 + ["::1"] * 3
    finally:
        for one in peers:
            one.close()


def test_who_was_handed_over_by_another_version_is_known_by_it_too(world):
    ours, theirs = socket.socketpair()
    with theirs:
        world.server.connections.adopt(HandedConnection(ours, "::ffff:127.0.0.1", 0))
        assert addresses(world) == ["127.0.0.1"]


def test_a_quota_of_an_address_holds_however_it_was_written():
    entity = ((IP, "::ffff:10.0.0.1"),)
    limits = Limits(CONNECTION, {entity: {CONNECTION: 9.0}})
    assert limits.of_ip("10.0.0.1").bound == 9.0
    assert limits.at(entity) == 9.0
