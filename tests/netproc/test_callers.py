"""Who asks is made out once for a connection and client id, and told to whoever decides."""

import pytest

from appliance.authorization.rights import Authorizer
from appliance.base.caller import ANONYMOUS, Caller, decode
from appliance.config.internal_topics import OFFSETS
from appliance.ring.messages import COORDINATE, ENSURE_TOPIC, FORWARD
from tests.netproc.netproc_world import World

API_VERSIONS = {"client_software_name": "test", "client_software_version": "1"}
HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
METADATA = {"topics": [{"name": "new"}], "allow_auto_topic_creation": True}
ME = Caller(ANONYMOUS, "client", "127.0.0.1", "PLAINTEXT")


class Counted(Authorizer):
    """Allows everything, and notes whom it was asked about."""

    def __init__(self):
        self.callers = []

    def allows_everything(self, caller):
        self.callers.append(caller)
        return True

    def allows(self, caller, operation, resource):
        raise AssertionError("everything is allowed")

    allows_some = allows


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path, topics=("flights", OFFSETS.name), authorizer=Counted())
    yield one
    one.close()


def test_a_caller_is_made_once_for_a_connection_and_client_id(world):
    callers = world.seat.authorizer.callers
    callers.clear()
    one, other = world.client("client"), world.client("client")
    for client in (one, one, other):
        client.ask(18, 4, **API_VERSIONS)
    assert callers == [ME, ME], "one for each connection"
    one.name = b"another \xff"
    for _ in range(2):
        one.ask(18, 4, **API_VERSIONS)
    assert callers[2:] == [ME._replace(client_id="another \N{REPLACEMENT CHARACTER}")]


def test_who_decides_is_told(world):
    client = world.client("client")
    told = {}
    seen = world.control.handle

    def handle(peer, messages):
        for message in messages:
            told[message.op] = message.payload
        seen(peer, messages)

    world.control.handle = handle
    client.ask(35, 4, topics=None)
    client.ask(3, 7, **METADATA)
    client.send(12, 4, **HEARTBEAT)
    world.turn()
    told |= {one.op: one.payload[: one.e] for one in world.asked()}
    assert decode(told[FORWARD]) == ME
    assert decode(told[ENSURE_TOPIC].removesuffix(b"new")) == ME
    assert decode(told[COORDINATE]) == ME
