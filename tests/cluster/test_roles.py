"""One node is the controller, two others are brokers (`process.roles`): the same cluster as when
each is both, but that the controller has no partitions and the brokers have no vote."""

import os
import signal

import confluent_kafka
import pytest

from appliance.observer.door import Observer
from appliance.observer.health import HealthWatch
from appliance.ring.process_table import CONTROL, IOPROC, Peer
from appliance.shell.version import current
from benchmarks import nodes as layout
from console.model.asking.link import Link as Asking
from console.model.cluster.nodes import read_nodes
from console.model.cluster.versions import read_versions
from tests.broker_process import KAFKA
from tests.cluster.nodes import CREATE_TOPICS, DESCRIBE_QUORUM, Nodes
from tests.differential.link import Link

API_VERSIONS, PRODUCE, VOTE, METADATA = 18, 0, 52, 3
CONTROLLER, BROKERS = 1, (2, 3)
TOPIC, COUNT = "t", 4
ROLES = {CONTROLLER: "controller"} | dict.fromkeys(BROKERS, "broker")
ours = pytest.mark.skipif(KAFKA, reason="it looks into the tables of the appliance")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    places = layout.places(3, ROLES)
    with Nodes(tmp_path_factory.mktemp("roles"), places=places) as nodes:
        nodes.create(TOPIC, COUNT, factor=2)
        yield nodes


def table(nodes, number):
    return Observer(str(nodes[number].data)).tables


def write(nodes, count):
    """So many records, acknowledged by all in sync."""
    producer = confluent_kafka.Producer({"bootstrap.servers": nodes.bootstrap, "acks": "all"})
    failed = []
    for number in range(count):
        producer.produce(
            TOPIC, b"v%d" % number, partition=number % COUNT,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )  # fmt: skip
    assert producer.flush(30) == 0 and not failed, failed


def read(nodes, count):
    """The values that a group finds, from the beginning on."""
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": nodes.bootstrap, "group.id": "g", "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    })  # fmt: skip
    consumer.subscribe([TOPIC])
    found = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None and not message.error(), message and message.error()
        found.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def quorum(nodes, number):
    topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    (told,) = nodes.ask(DESCRIBE_QUORUM, 2, {"topics": [topic]}, number)["topics"]
    (one,) = told["partitions"]
    return one


def test_brokers_observe_and_the_controller_is_no_broker(nodes):
    def observers():
        return [one["replica_id"] for one in quorum(nodes, BROKERS[0])["observers"]]

    nodes.wait(lambda: observers() == [*BROKERS], "both observe")
    for number in BROKERS:
        told = quorum(nodes, number)
        assert told["leader_id"] == CONTROLLER
        assert [one["replica_id"] for one in told["current_voters"]] == [CONTROLLER]
        assert nodes.brokers(number) == [*BROKERS]
    led = {one.leader for one in nodes.partitions(TOPIC).values()}
    assert led == set(BROKERS)


def test_the_controller_serves_what_controllers_do_and_brokers_do_not(nodes):
    served = {}
    for number in (CONTROLLER, BROKERS[0]):
        link = Link((nodes[number].host, nodes[number].port))
        keys = link.ask(API_VERSIONS, 3, {"client_software_name": "t",
                        "client_software_version": "1"})["api_keys"]  # fmt: skip
        served[number] = {one["api_key"] for one in keys}
        link.close()
    assert {VOTE, CREATE_TOPICS} <= served[CONTROLLER] and VOTE not in served[BROKERS[0]]
    assert not {PRODUCE, METADATA} & served[CONTROLLER]


@ours
def test_each_tells_its_version_the_controller_where_controllers_listen(nodes):
    link = Asking(nodes.bootstrap, {}, 30)
    assert read_versions(link, read_nodes(link)).versions == dict.fromkeys(nodes.all, current())


@ours
def test_the_controller_has_no_process_and_no_row_for_partitions(nodes):
    tables = table(nodes, CONTROLLER)
    assert not [peer for peer in tables.processes.peers if peer.kind == IOPROC]
    assert not [row.handle for row in tables.partitions.live_rows()]
    watch = HealthWatch(tables.processes, tables.partitions)
    assert not watch.is_broker
    nodes.wait(lambda: watch.verdict(0).missing == (), "it is ready")
    nodes.wait(lambda: "as controller" in nodes[CONTROLLER].output(), "it says so")
    files = [path.name for path in nodes[CONTROLLER].data.iterdir() if path.is_dir()]
    assert files == ["__cluster_metadata-0"]


def test_clients_write_and_read_and_a_dead_broker_is_replaced(nodes):
    write(nodes, 40)
    assert sorted(read(nodes, 40)) == sorted(b"v%d" % number for number in range(40))
    gone, stays = BROKERS
    nodes.kill(gone)
    nodes.wait(
        lambda: {one.leader for one in nodes.partitions(TOPIC, stays).values()} == {stays},
        "the other leads",
    )
    nodes.start(gone)
    nodes.wait(lambda: nodes.whole(TOPIC, COUNT), "both are in sync")


def test_brokers_serve_without_the_controller_and_find_it_again(nodes):
    nodes.kill(CONTROLLER)
    write(nodes, 40)
    nodes[CONTROLLER].start(wait=False)
    nodes.create("later", 2, factor=2)
    assert quorum(nodes, BROKERS[0])["leader_id"] == CONTROLLER
    nodes.compare_replicas(TOPIC, COUNT)


@ours
def test_a_broker_whose_control_process_dies_stays_registered(nodes):
    number = BROKERS[0]
    before = nodes.partitions(TOPIC)
    processes = table(nodes, number).processes
    generation = processes.generation(Peer(CONTROL, 0))
    os.kill(processes.pid(Peer(CONTROL, 0)), signal.SIGKILL)
    nodes.wait(lambda: processes.generation(Peer(CONTROL, 0)) > generation, "its successor")
    nodes.create("latest", 1, factor=2)
    assert nodes.partitions(TOPIC) == before


def test_all_end_in_order(nodes):
    for number in (*BROKERS, CONTROLLER):
        assert nodes.stop(number) == (143 if KAFKA else 0)
