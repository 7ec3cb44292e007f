"""Three nodes that reach one another by TLS alone, with certificates on both sides: they elect,
replicate, go on when one is killed and comes back; who shows no certificate of theirs is not
served, and plaintext is none. PENSTOCK_TEST_BROKER=kafka runs it on Apache Kafka."""

import socket
import ssl
import time
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import KafkaException, Producer

from appliance.authorization.operations import READ, TRANSACTIONAL_ID, WRITE
from appliance.config.acl_checks import STANDARD
from appliance.observer.door import Observer
from benchmarks import kafka
from tests.authorization.refusing import BATCH
from tests.authorization.secured import creation, every
from tests.authorization.test_node_principals import KEYS as NODE_KEYS
from tests.authorization.test_node_principals import values_of, versions
from tests.broker_process import KAFKA
from tests.cluster.cluster_load import PARTITIONS, ClusterLoad, kill_one_and_bring_it_back
from tests.cluster.nodes import Nodes
from tests.differential.link import Link
from tests.tls.nodes_asked import ask, codes, doors, quorum_of, send
from tests.tls.secured import of_broker

pytestmark = pytest.mark.timeout(300)
API_VERSIONS = 18
ASK_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 0000")
LIMIT_S = 30
WHO_IS_A_NODE = {"penstock.node.principals": "User:CN=broker,O=Tests"}


def secure(nodes, pki):
    """Nodes come by BROKERS and CONTROLLER, in TLS; clients by PLAINTEXT, where they may do
    everything, or by OUTSIDE, where ACLs say what they may do."""
    taken = {one.port for one in nodes.places} | {one.controller_port for one in nodes.places}
    for node in nodes.all.values():
        node.brokers_port, node.outside_port = ports(2, taken)
        more = (
            f"BROKERS://{node.host}:{node.brokers_port},OUTSIDE://{node.host}:{node.outside_port}"
        )
        node.properties |= of_broker(pki) | {
            "listeners": f"{node.properties['listeners']},{more}",
            "advertised.listeners": f"{node.properties['advertised.listeners']},{more}",
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,BROKERS:SSL,OUTSIDE:SSL",
            "inter.broker.listener.name": "BROKERS",
            "ssl.client.auth": "required",
            "listener.name.brokers.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "authorizer.class.name": STANDARD,
            "super.users": "User:ANONYMOUS;User:CN=broker,O=Tests" if KAFKA else "User:ANONYMOUS",
            **WHO_IS_A_NODE,
        }  # fmt: skip


def ports(count, taken):
    """Free ones that are not taken, and are then."""
    found = []
    while len(found) < count:
        port = kafka.free_port()
        if port not in taken:
            found.append(port)
            taken.add(port)
    return found


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
            taken = set()
            new = {number: ports(2, taken) for number in nodes.all}
            voters = ",".join(f"{n}@{nodes[n].host}:{new[n][1]}" for n in nodes.all)
            for step in (with_both, lambda *_: changed(voters), tls_alone):
                for number, node in nodes.all.items():
                    node.properties |= step(node, *new[number]) | of_broker(pki)
                    nodes.kill(number)
                    nodes.start(number)
                    load.wait_served()
                    load.go_on()
            load.finish_level()


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


def test_one_is_killed_and_comes_back(nodes):
    nodes.create("each", PARTITIONS)
    kill_one_and_bring_it_back(ClusterLoad(nodes, "each"))


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


# Clients with a certificate of the same authority -------------------------------------------------

ALICE = "User:CN=alice,OU=Readers,O=Tests"
REFUSED = "CLUSTER_AUTHORIZATION_FAILED"
NO_TOPIC = "TOPIC_AUTHORIZATION_FAILED"


def as_alice(pki, address):
    return closing(Link(address, context=pki.context(certificate="client")))


@pytest.mark.skipif(KAFKA, reason="Apache Kafka refuses some of them by other codes")
def test_a_clients_certificate_makes_no_node(nodes, pki):
    before = quorum_of(nodes)
    for place in nodes.places:
        with as_alice(pki, (place.host, place.controller_port)) as link:
            for key in NODE_KEYS:
                for version in versions(key):
                    assert codes(ask(link, key, version, **values_of(key))) == {REFUSED}, key
    assert quorum_of(nodes) == before


@pytest.mark.skipif(KAFKA, reason="it waits by the appliance's tables")
def test_a_rule_that_is_gone_is_gone_on_all_nodes(nodes, pki):
    """Once a node has read that, it refuses what comes: a produce, a fetch session, a fetch that
    was parked, a transaction that was open."""
    nodes.create("ruled", assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    rules = [creation(ALICE.partition(":")[2], op, "ruled") for op in (READ, WRITE)]
    rules.append(creation(ALICE.partition(":")[2], WRITE, "moves", TRANSACTIONAL_ID))
    assert codes(told(nodes, 30, creations=rules)) == {"NONE"}
    offset_reached(nodes)
    errors = []
    known = {"transactional.id": "moves", "error_cb": lambda error: errors.append(error.name())}
    producer = Producer(alices(nodes, pki) | known)
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    assert delivered(producer) is None
    with ExitStack() as stack:
        clients = [
            Alice(stack, pki, node, partition) for partition, node in enumerate(nodes.all.values())
        ]
        for one in clients:
            assert one.produce() == {"NONE"} and one.fetch() == {"NONE"}
            one.park()
        before = time.monotonic()
        gone = told(nodes, 31, filters=[every(principal_filter=ALICE)])
        assert len(gone["filter_results"][0]["matching_acls"]) == 3
        offset_reached(nodes)
        took_ms = (time.monotonic() - before) * 1000
        for one in clients:
            assert one.produce() == {NO_TOPIC} and one.fetch() == {"NONE", NO_TOPIC}
            wake(nodes, one.partition)
            answer = one.parked.receive()
            assert NO_TOPIC in codes(answer) and "records': b'" not in str(answer)
    try:
        errors.append(delivered(producer).name())
    except KafkaException as known:  # already, as it looked for its coordinator
        errors.append(known.args[0].name())
    try:
        producer.commit_transaction(LIMIT_S)
    except KafkaException as refused:
        errors.append(refused.args[0].name())
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in errors, errors
    print(f"all nodes know after {took_ms:.0f} ms")


def told(nodes, key, **values):
    with closing(Link((nodes[1].host, nodes[1].port))) as link:
        return ask(link, key, 3, **values)


def offset_reached(nodes):
    """All nodes have read what the furthest one has."""

    def offsets():
        return [Observer(str(one.data)).tables.processes.metadata_offset
                for one in nodes.all.values()]  # fmt: skip

    furthest = max(offsets())
    nodes.wait(lambda: min(offsets()) >= furthest, "all have read it")


def alices(nodes, pki):
    at = ",".join(f"{one.host}:{one.outside_port}" for one in nodes.all.values())
    return {
        "bootstrap.servers": at, "security.protocol": "ssl", "ssl.ca.location": pki.path("ca.pem"),
        "ssl.certificate.location": pki.path("client.pem"),
        "ssl.key.location": pki.path("client.pem"), "log_level": 0,
    }  # fmt: skip


def delivered(producer):
    """The error of one record, None without one."""
    found = []
    producer.produce("ruled", b"x", partition=0, on_delivery=lambda error, _: found.append(error))
    assert not producer.flush(LIMIT_S)
    return found[0]


def wake(nodes, partition):
    """A record of somebody else."""
    producer = Producer({"bootstrap.servers": nodes.bootstrap})
    producer.produce("ruled", b"woken", partition=partition)
    assert not producer.flush(LIMIT_S)


class Alice:
    """Her connections to the leader of a partition: one asks, in one a fetch is parked."""

    def __init__(self, stack, pki, node, partition):
        self.partition = partition
        address = node.host, node.outside_port
        self.link, self.parked = (stack.enter_context(as_alice(pki, address)) for _ in range(2))
        self.session, self.epoch = 0, 0

    def produce(self):
        row = {"index": self.partition, "records": BATCH}
        topics = [{"name": "ruled", "partition_data": [row]}]
        return codes(ask(self.link, 0, 9, transactional_id=None, acks=-1, timeout=9999,
                         topic_data=topics))  # fmt: skip

    def fetch(self):
        """In a session, whose partitions are named once."""
        row = self._row(0)
        topics = [{"topic": "ruled", "partitions": [row]}] if self.epoch == 0 else []
        answer = ask(self.link, 1, 12, **self._fetch(0, 1, topics))
        self.session, self.epoch = answer["session_id"], self.epoch + 1
        return codes(answer)

    def park(self):
        topics = [{"topic": "ruled", "partitions": [self._row(1 << 20)]}]
        end = ask(self.link, 2, 7, replica_id=-1, isolation_level=0, topics=[{
            "name": "ruled",
            "partitions": [{"partition_index": self.partition, "current_leader_epoch": -1,
                            "timestamp": -1}],
        }])["topics"][0]["partitions"][0]["offset"]  # fmt: skip
        topics[0]["partitions"][0]["fetch_offset"] = end
        send(self.parked, 1, 12, **self._fetch(LIMIT_S * 1000, 1, topics) | {
            "session_id": 0, "session_epoch": -1,
        })  # fmt: skip

    def _row(self, offset):
        return {
            "partition": self.partition, "current_leader_epoch": -1, "fetch_offset": offset,
            "last_fetched_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 1 << 20,
        }  # fmt: skip

    def _fetch(self, wait_ms, least, topics):
        return {
            "cluster_id": None, "replica_id": -1, "max_wait": wait_ms, "min_bytes": least,
            "max_bytes": 1 << 20, "isolation_level": 0, "session_id": self.session,
            "session_epoch": self.epoch, "topics": topics, "forgotten_topics_data": [],
            "rack_id": "",
        }  # fmt: skip
