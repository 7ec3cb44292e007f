"""Three nodes that reach one another by TLS alone, with certificates on both sides: they elect,
replicate, go on when one is killed and comes back; who shows no certificate of theirs is not
served, and plaintext is none. PENSTOCK_TEST_BROKER=kafka runs it on Apache Kafka."""

import socket
import ssl
from contextlib import closing

import pytest

from benchmarks import kafka
from tests.cluster.nodes import Nodes
from tests.differential.link import Link
from tests.faults.load import Load
from tests.tls.secured import of_broker

pytestmark = pytest.mark.timeout(300)
PARTITIONS = 3
API_VERSIONS = 18
ASK_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 0000")
LIMIT_S = 30
WHO_IS_A_NODE = {"penstock.node.principals": "User:CN=broker,O=Tests"}


def secure(nodes, pki):
    """Nodes come by BROKERS and CONTROLLER, in TLS; clients by PLAINTEXT."""
    for node in nodes.all.values():
        node.brokers_port = kafka.free_port()
        more = f"BROKERS://{node.host}:{node.brokers_port}"
        node.properties |= of_broker(pki) | {
            "listeners": f"{node.properties['listeners']},{more}",
            "advertised.listeners": f"{node.properties['advertised.listeners']},{more}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,BROKERS:SSL",
            "inter.broker.listener.name": "BROKERS",
            "listener.name.brokers.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
        }


class ClusterLoad(Load):
    at_most = 500

    def __init__(self, nodes, topic):
        super().__init__(nodes.bootstrap, topic, PARTITIONS)
        self.nodes = nodes

    def wait_served(self):
        self.nodes.wait(lambda: self.nodes.whole(self.topic, PARTITIONS), "all are in sync")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, pki):
    made = Nodes(tmp_path_factory.mktemp("nodes"))
    secure(made, pki)
    with made as running:
        yield running


def test_a_cluster_changes_over_node_by_node(tmp_path, pki):
    """First every node gets listeners in TLS, for brokers and for controllers; then each uses
    them; then each closes the others, and says who is a node. Nothing is lost meanwhile."""
    with Nodes(tmp_path) as nodes:
        nodes.create("each", PARTITIONS)
        with ClusterLoad(nodes, "each") as load:
            load.go_on()
            ports = {number: [kafka.free_port(), kafka.free_port()] for number in nodes.all}
            voters = ",".join(f"{n}@{nodes[n].host}:{ports[n][1]}" for n in nodes.all)
            for step in (with_both, lambda *_: changed(voters), tls_alone):
                for number, node in nodes.all.items():
                    node.properties |= step(node, *ports[number]) | of_broker(pki)
                    nodes.kill(number)
                    nodes.start(number)
                    load.wait_served()
                    load.go_on()
            load.finish()
            load.check_errors()
            load.check_content()
            nodes.wait(lambda: nodes.level(load.topic, PARTITIONS), "all replicas are level")
            nodes.compare_replicas(load.topic, PARTITIONS)


def with_both(node, brokers, controllers):
    """Listeners in TLS beside those that are there."""
    more = f"BROKERS://{node.host}:{brokers}"
    return {
        "listeners":
            f"{node.properties['listeners']},{more},CONTROLLERS://{node.host}:{controllers}",
        "advertised.listeners": f"{node.properties['advertised.listeners']},{more}",
        "listener.security.protocol.map":
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,BROKERS:SSL,CONTROLLERS:SSL",
        "controller.listener.names": "CONTROLLER,CONTROLLERS",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.brokers.ssl.client.auth": "required",
        "listener.name.controllers.ssl.client.auth": "required",
    }  # fmt: skip


def changed(voters):
    """Brokers and controllers are reached by them."""
    return {
        "inter.broker.listener.name": "BROKERS",
        "controller.listener.names": "CONTROLLERS,CONTROLLER",
        "controller.quorum.voters": voters,
    }


def tls_alone(node, *_):
    """Controllers have no other one, and nodes are known."""
    opened = [one for one in node.properties["listeners"].split(",") if "CONTROLLER:" not in one]
    return {
        "listeners": ",".join(opened),
        "controller.listener.names": "CONTROLLERS",
        **WHO_IS_A_NODE,
    }


def doors(nodes):
    """Where nodes are reached by nodes, and nobody else by plaintext."""
    controllers = {place.number: place.controller_port for place in nodes.places}
    for number, node in nodes.all.items():
        yield node.host, node.brokers_port
        yield node.host, controllers[number]


def test_one_is_killed_and_comes_back(nodes):
    nodes.create("each", PARTITIONS)
    with ClusterLoad(nodes, "each") as load:
        load.go_on()
        victim = nodes.partition("each").leader
        nodes.kill(victim)
        load.go_on()
        nodes.start(victim)
        load.wait_served()
        load.go_on()
        load.finish()
        load.check_errors()
        load.check_content()
        nodes.wait(lambda: nodes.level(load.topic, PARTITIONS), "all replicas are level")
        nodes.compare_replicas(load.topic, PARTITIONS)


def test_a_node_answers_who_shows_a_certificate(nodes, pki):
    for address in doors(nodes):
        with closing(Link(address, context=pki.context(certificate="client"))) as link:
            assert link.ask(API_VERSIONS, 0, {})["error_code"] == "NONE"


def exchange(address, context):
    """Asks in TLS for the versions of APIs. Raises OSError if nothing is answered."""
    with (
        socket.create_connection(address, LIMIT_S) as plain,
        context.wrap_socket(plain, server_hostname=address[0]) as peer,
    ):
        peer.sendall(ASK_VERSIONS)
        if not peer.recv(1):
            raise ConnectionResetError


def test_who_shows_none_or_a_foreign_one_is_not_served(nodes, pki):
    for certificate in (None, "foreign"):
        for address in doors(nodes):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                exchange(address, pki.context(certificate=certificate))


def test_plaintext_is_not_answered(nodes):
    for address in doors(nodes):
        with socket.create_connection(address, LIMIT_S) as plain:
            plain.sendall(ASK_VERSIONS)
            heard = b""
            try:
                while piece := plain.recv(4096):
                    heard += piece
            except ConnectionResetError:
                pass
            assert not heard[8:], "an answer in plaintext is longer than an alert"
