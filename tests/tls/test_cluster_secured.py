"""Three nodes whose clients come by TLS, and who talk to one another in plain: clients are told the
addresses with TLS of all of them, and go on when one is killed and comes back.
PENSTOCK_TEST_BROKER=kafka runs it on Apache Kafka."""

from contextlib import closing

import pytest

from benchmarks import kafka
from tests.cluster.cluster_load import ClusterLoad, kill_one_and_bring_it_back
from tests.cluster.nodes import Nodes
from tests.differential.link import Link
from tests.tls import stock
from tests.tls.secured import of_broker
from tests.tls.stock import librdkafka

pytestmark = pytest.mark.timeout(300)
PARTITIONS = 3
DESCRIBE_CLUSTER = 60


class Sealed(Nodes):
    """Each has a listener for clients that must show a certificate."""

    def __init__(self, folder, pki):
        super().__init__(folder)
        self.pki = pki
        others = {port for one in self.places for port in (one.port, one.controller_port)}
        taken = set(others)
        while len(taken) < len(others) + len(self.all):
            taken.add(kafka.free_port())
        self.tls_ports = taken - others
        for node, port in zip(self.all.values(), self.tls_ports, strict=True):
            node.tls_port = port
            more = f"CLIENTS://{node.host}:{port}"
            node.properties |= of_broker(pki) | {
                "listeners": f"{node.properties['listeners']},{more}",
                "advertised.listeners": f"{node.properties['advertised.listeners']},{more}",
                "listener.security.protocol.map": (
                    "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENTS:SSL"
                ),
                "inter.broker.listener.name": "PLAINTEXT",
                "listener.name.clients.ssl.client.auth": "required",
            }

    @property
    def sealed_bootstrap(self):
        return ",".join(f"{node.host}:{node.tls_port}" for node in self.all.values())


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, pki):
    with Sealed(tmp_path_factory.mktemp("sealed"), pki) as running:
        yield running


def told(node, port, context):
    """The ports of all brokers, as who asks there is told them."""
    with closing(Link((node.host, port), context=context)) as link:
        asked = {"include_cluster_authorized_operations": False}
        return {one["port"] for one in link.ask(DESCRIBE_CLUSTER, 0, asked)["brokers"]}


def test_clients_are_told_of_listeners_like_the_one_they_came_by(nodes, pki):
    context = pki.context(certificate="client")
    plain = {node.port for node in nodes.all.values()}
    for number, node in nodes.all.items():
        nodes.wait(lambda one=number: len(nodes.brokers(one)) == 3, "each knows all")
        assert told(node, node.port, None) == plain
        assert told(node, node.tls_port, context) == nodes.tls_ports


def test_a_group_reads_what_several_lead(nodes, pki):
    nodes.create("shared", 6)
    assert len({one.leader for one in nodes.partitions("shared").values()}) == 3
    settings = librdkafka(pki, nodes.sealed_bootstrap, certificate="client")
    values = [b"%d" % number for number in range(600)]
    assert sorted(stock.there_and_back_librdkafka(settings, "shared", values)) == sorted(values)


def test_one_is_killed_and_comes_back(nodes):
    nodes.create("each", PARTITIONS)
    settings = librdkafka(nodes.pki, nodes.sealed_bootstrap, certificate="client")
    kill_one_and_bring_it_back(ClusterLoad(nodes, "each", nodes.sealed_bootstrap, settings))
