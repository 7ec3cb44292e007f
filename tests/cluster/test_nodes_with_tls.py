"""Nodes whose clients come over TLS, named before the plain listener by which they reach one
another."""

import socket
import ssl
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from appliance.base.os_disk import OsDisk
from appliance.control.quorum import log_repair as repair
from benchmarks import kafka
from tests.certificates.authority import authority
from tests.cluster.nodes import LIMIT_S, Nodes

ROOT = authority()
STORE = "listener.name.ssl.ssl.keystore.location"


class Sealed(Nodes):
    """Three, each with a certificate of its own."""

    def __init__(self, folder):
        super().__init__(folder)
        self.folder = folder
        (folder / "ca.pem").write_bytes(ROOT.chain_pem())
        self.tls = {}
        for number, node in self.all.items():
            self.tls[number] = port = kafka.free_port(node.port)
            own, more = node.properties, f"SSL://{node.host}:{port},"
            self.write(number)
            node.properties = own | {
                "listeners": more + own["listeners"],
                "advertised.listeners": more + own["advertised.listeners"],
                "listener.security.protocol.map": "SSL:SSL,PLAINTEXT:PLAINTEXT,"
                "CONTROLLER:PLAINTEXT",
                STORE: str(self.store(number)),
            }

    def store(self, number, word=""):
        return self.folder / f"node-{number}{word}.pem"

    def write(self, number, word=""):
        made = ROOT.sign(f"node {number}", hosts=(self.all[number].host,))
        self.store(number, word).write_bytes(made.pem())
        return made

    def client(self, **more):
        """Properties of one that knows the listeners with TLS alone."""
        at = ",".join(f"{self.all[number].host}:{port}" for number, port in self.tls.items())
        named = {key.replace("_", "."): value for key, value in more.items()}
        return {
            "bootstrap.servers": at,
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.folder / "ca.pem"),
            **named,
        }

    def shown(self, number):
        """The certificate that a client of a node is shown."""
        believes = ssl.create_default_context(cadata=ROOT.chain_pem().decode())
        host = self.all[number].host
        with (
            socket.create_connection((host, self.tls[number]), LIMIT_S) as sock,
            believes.wrap_socket(sock, server_hostname=host) as client,
        ):
            return client.getpeercert(binary_form=True)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Sealed(tmp_path_factory.mktemp("sealed")) as three:
        yield three


def test_what_comes_over_tls_is_kept_by_all_who_reach_one_another_without(nodes):
    nodes.create("t", 3, {"min.insync.replicas": "3"})
    producer = Producer(nodes.client(acks="all", transactional_id="x"))
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    for number in range(300):
        producer.produce("t", str(number).encode(), partition=number % 3)
    producer.commit_transaction(LIMIT_S)
    reader = Consumer(nodes.client(group_id="g", auto_offset_reset="earliest"))
    try:
        reader.subscribe(["t"])
        found = set()
        end = time.monotonic() + LIMIT_S
        while len(found) < 300:
            assert time.monotonic() < end, len(found)
            found |= {int(one.value()) for one in reader.consume(300, 0.2) if not one.error()}
    finally:
        reader.close()
    assert nodes.whole("t", 3)
    nodes.wait(lambda: nodes.level("t", 3), "all have the same")


def test_a_node_registers_what_each_listener_speaks(nodes):
    brokers = repair.plan(OsDisk(), str(nodes[1].data)).image.brokers
    told = {
        number: [(one.name, one.security_protocol) for one in broker.endpoints]
        for number, broker in brokers.items()
    }
    assert told == {number: [("SSL", 1), ("PLAINTEXT", 0)] for number in nodes.all}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_certificate_is_changed_on_each_node_whoever_leads(nodes, number):
    new = nodes.write(number, "-new")
    entry = ConfigEntry(
        STORE, str(nodes.store(number, "-new")), incremental_operation=AlterConfigOpType.SET
    )
    change = ConfigResource("broker", str(number), incremental_configs=[entry])
    admin = AdminClient(nodes.client())
    admin.incremental_alter_configs([change])[change].result(LIMIT_S)
    nodes.wait(lambda: nodes.shown(number) == new.der, "it is shown")
    away = ConfigEntry(STORE, "/none.pem", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource("broker", str(number), incremental_configs=[away])
    with pytest.raises(KafkaException, match="no such file"):
        admin.incremental_alter_configs([change])[change].result(LIMIT_S)
    assert nodes.shown(number) == new.der
