"""What only nodes ask of each other is served on no listener of clients."""

import pytest

from appliance.handlers import registry
from appliance.handlers.fetch_sessions import FetchSessions
from tests.netproc.netproc_world import World

NODES_ONLY = {
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    56: "AlterPartition",
    58: "Envelope",
    59: "FetchSnapshot",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    67: "AllocateProducerIds",
    70: "ControllerRegistration",
    73: "AssignReplicasToDirs",
    82: "UpdateRaftVoter",
}
FETCH = 1  # of the metadata log there, of partitions here
HIGHEST_KEY, HIGHEST_VERSION = 100, 6


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def test_every_api_between_nodes_is_known_here():
    """A new one has to be named above, so that it is walked through below."""
    rows = {row.key: row.name for row in registry.CONTROLLERS_ALONE if row.key != FETCH}
    assert rows == NODES_ONLY
    assert all(row.between_nodes for row in registry.CONTROLLERS_ALONE)


def test_none_is_served_to_clients():
    served = registry.handlers(FetchSessions(1, lambda: 1))
    assert not NODES_ONLY.keys() & served.keys()
    assert not [row.name for row in served.values() if row.between_nodes]


@pytest.mark.parametrize("key", NODES_ONLY)
def test_whoever_asks_a_listener_of_clients_is_hung_up_on(world, key):
    for version in range(HIGHEST_VERSION):
        client = world.client()
        client.send_body(key, version, bytes(64))
        world.turn()
        world.turn()
        assert client.sock.recv(99) == b"", f"version {version} is answered"


def test_what_is_not_in_the_registry_is_not_served(world):
    served = world.server._handlers[0]
    for key in set(range(HIGHEST_KEY)) - served.keys():
        client = world.client()
        client.send_body(key, 0, bytes(64))
        world.turn()
        world.turn()
        assert client.sock.recv(99) == b"", f"API key {key} is answered"
