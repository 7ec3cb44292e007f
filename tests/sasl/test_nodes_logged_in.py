"""Three nodes that log in at one another by SCRAM over TLS, before they have any metadata: they
elect, replicate, go on when one is killed; a client with a login of its own makes no node, and a
node with a wrong password is named by its log and by the doctor."""

from contextlib import closing

import pytest

from benchmarks import kafka
from tests.authorization.test_node_principals import KEYS as NODE_KEYS
from tests.authorization.test_node_principals import values_of, versions
from tests.broker_process import KAFKA
from tests.cluster.cluster_load import PARTITIONS, ClusterLoad, kill_one_and_bring_it_back
from tests.cluster.nodes import Nodes
from tests.console_process import typing
from tests.differential.link import CLOSED, Link
from tests.sasl.logged import PLAIN_MODULE, SCRAM_MODULE
from tests.tls.nodes_asked import ask, codes, doors, quorum_of
from tests.tls.secured import Pki, of_broker

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="it looks at the appliance's tables and commands"),
]
REFUSED = "CLUSTER_AUTHORIZATION_FAILED"
NODE, SECRET, WRONG = "node", "n0de-secret", "wr0ng-secret"
BROKERS = "listener.name.brokers.scram-sha-512.sasl.jaas.config"
CONTROLLERS = "listener.name.controller.scram-sha-512.sasl.jaas.config"
CLIENTS = "listener.name.controller.plain.sasl.jaas.config"


def scram(password=SECRET):
    return f'{SCRAM_MODULE} required username="{NODE}" password="{password}";'


def plain():
    return f'{PLAIN_MODULE} required user_alice="alice-secret";'


def logged_in(nodes, pki):
    """Clients come by PLAINTEXT, nodes by BROKERS and CONTROLLER."""
    taken = {one.port for one in nodes.places} | {one.controller_port for one in nodes.places}
    for node in nodes.all.values():
        while (port := kafka.free_port()) in taken:
            pass
        taken.add(port)
        node.brokers_port = port
        more = f"BROKERS://{node.host}:{port}"
        node.properties |= of_broker(pki) | {
            "listeners": f"{node.properties['listeners']},{more}",
            "advertised.listeners": f"{node.properties['advertised.listeners']},{more}",
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL,BROKERS:SASL_SSL",
            "inter.broker.listener.name": "BROKERS",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
            BROKERS: scram(),
            CONTROLLERS: scram(),
            CLIENTS: plain(),
            "connections.max.reauth.ms": "3000",
        }  # fmt: skip
    return nodes


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, pki):
    with logged_in(Nodes(tmp_path_factory.mktemp("nodes")), pki) as running:
        yield running


def test_one_is_killed_and_comes_back(nodes):
    nodes.create("each", PARTITIONS)
    kill_one_and_bring_it_back(ClusterLoad(nodes, "each"))


# Who has no node's login --------------------------------------------------------------------------


def test_who_has_not_logged_in_is_not_served(nodes, pki):
    for address in doors(nodes):
        for key in (1, 3, 52, 58):
            with closing(Link(address, context=pki.context())) as link:
                link.send_raw(key, 0 if key > 3 else 4, bytes(64), key > 3)
                assert link.receive() is CLOSED, key


def test_a_client_that_logs_in_there_is_no_node(nodes, pki):
    before = quorum_of(nodes)
    for place in nodes.places:
        with closing(Link((place.host, place.controller_port), context=pki.context())) as link:
            assert link.ask(17, 1, {"mechanism": "PLAIN"})["error_code"] == "NONE"
            claim = {"auth_bytes": b"\0alice\0alice-secret"}
            assert link.ask(36, 1, claim)["error_code"] == "NONE"
            for key in NODE_KEYS:
                for version in versions(key):
                    assert codes(ask(link, key, version, **values_of(key))) == {REFUSED}, key
    assert quorum_of(nodes) == before


# A wrong password ---------------------------------------------------------------------------------


def test_a_node_with_a_wrong_password_is_named(nodes):
    node = nodes[3]
    nodes.kill(3)
    right = dict(node.properties)
    node.properties |= {BROKERS: scram(WRONG), CONTROLLERS: scram(WRONG)}
    before = len(node.output())
    try:
        node.start(wait=False)
        said = "node-login-refused"
        nodes.wait(lambda: said in node.output()[before:], "its log says so")
        doctor = typing(nodes.bootstrap)("doctor", "--data", str(node.data), code=2).stdout
    finally:
        node.kill()
        node.properties = right
    told = node.output()[before:]
    assert f"user {NODE}" in told and "listener=CONTROLLER" in told
    assert "this node's login there is refused" in doctor and f"user {NODE}" in doctor
    assert WRONG not in told + doctor and SECRET not in told + doctor
    nodes.start(3)
    nodes.wait(lambda: nodes.whole("each", PARTITIONS), "all are in sync")
