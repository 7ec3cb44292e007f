"""Delegation tokens in a cluster: whichever node is asked, the controller decides, and every node
lets in who has one, until it is removed."""

import base64
from contextlib import closing

import pytest

from benchmarks import kafka
from benchmarks.peer import Wire
from tests.broker_process import KAFKA
from tests.cluster.nodes import Nodes
from tests.differential.link import Link
from tests.sasl.logged import USERS, jaas
from tests.sasl.talk import Talk

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="nodes of ours"),
]
CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
OWN = {"owner_principal_type": None, "owner_principal_name": None, "renewers": [],
       "max_lifetime": -1}  # fmt: skip
NOT_ALLOWED = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    made = Nodes(tmp_path_factory.mktemp("nodes"))
    taken = {one.port for one in made.places} | {one.controller_port for one in made.places}
    for node in made.all.values():
        while (port := kafka.free_port()) in taken:
            pass
        taken.add(port)
        node.clients_port = port
        more = f"CLIENTS://{node.host}:{port}"
        node.properties |= {
            "listeners": f"{node.properties['listeners']},{more}",
            "advertised.listeners": f"{node.properties['advertised.listeners']},{more}",
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.clients.plain.sasl.jaas.config": jaas(USERS),
            "delegation.token.secret.key": "of all nodes",
        }  # fmt: skip
    with made as running:
        yield running


def ask(node, key, version, values):
    with closing(Link((node.host, node.clients_port))) as link:
        link.login("alice", USERS["alice"])
        return link.ask(key, version, values)


def log_in(node, token):
    """The error code, and what the node then says to a client that asks for another token."""
    password = base64.b64encode(bytes.fromhex(token["hmac"])).decode()
    with Wire((node.host, node.clients_port)) as wire:
        talk = Talk(wire)
        words = ("SCRAM-SHA-512", token["token_id"], password)
        code = talk.scram(*words, 1, ",tokenauth=true")[0]
        if code:
            return code, None
        with closing(Link((node.host, node.clients_port))) as link:
            link._socket, unused = wire.socket, link._socket
            unused.close()
            return code, link.ask(CREATE, 3, OWN)["error_code"]


def wait_for(nodes, node, token, code):
    """The node answers a login by the token with this error code."""
    nodes.wait(lambda: log_in(node, token)[0] == code, f"a login by the token: {code}")


def test_every_node_serves_them(nodes):
    for asked in nodes.all.values():
        token = ask(asked, CREATE, 3, OWN)
        assert token["error_code"] == "NONE", token
        hmac = bytes.fromhex(token["hmac"])
        for node in nodes.all.values():
            wait_for(nodes, node, token, 0)
            assert log_in(node, token) == (0, NOT_ALLOWED)
            told = ask(node, DESCRIBE, 3, {"owners": None})["tokens"]
            assert token["hmac"] in {one["hmac"] for one in told}
            renewed = ask(node, RENEW, 2, {"hmac": hmac, "renew_period": -1})
            assert renewed["error_code"] == "NONE", renewed
        other = next(node for node in nodes.all.values() if node is not asked)
        gone = ask(other, EXPIRE, 2, {"hmac": hmac, "expiry_time_period": -1})
        assert gone["error_code"] == "NONE", gone
        for node in nodes.all.values():
            wait_for(nodes, node, token, 58)


def test_plaintext_is_refused_by_the_node_that_is_asked(nodes):
    for node in nodes.all.values():
        with closing(Link((node.host, node.port))) as link:
            assert link.ask(CREATE, 3, OWN)["error_code"] == NOT_ALLOWED
            renewal = {"hmac": b"x", "renew_period": -1}
            assert link.ask(RENEW, 2, renewal)["error_code"] == NOT_ALLOWED


def test_a_token_outlives_the_controller(nodes):
    node = next(iter(nodes.all.values()))
    token = ask(node, CREATE, 3, OWN)
    topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    [told] = nodes.ask(55, 1, {"topics": [topic]})["topics"][0]["partitions"]
    leader = told["leader_id"]
    nodes.kill(leader)
    try:
        for number, left in nodes.all.items():
            if number != leader:
                wait_for(nodes, left, token, 0)
    finally:
        nodes.start(leader)
    wait_for(nodes, nodes[leader], token, 0)
