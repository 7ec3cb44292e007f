"""Nodes of Apache Kafka and appliances in one cluster: a broker of Kafka's with our controller.

PENSTOCK_TEST_KAFKA_MORE=1 kills Kafka's broker, too, and does all of it again with a controller of
Kafka's (two minutes), which is formatted without the features that no appliance serves. They need
Java.
"""

import os

import confluent_kafka
import pytest

from benchmarks import kafka
from benchmarks import nodes as layout
from tests.broker_process import KAFKA
from tests.cluster.nodes import METADATA, Nodes

CONTROLLER, KAFKAS, OURS = 1, 2, 3
ROLES = {CONTROLLER: "controller", KAFKAS: "broker", OURS: "broker"}
SETTINGS = {"min.insync.replicas": "1", "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2"}  # fmt: skip
TOPIC, COUNT = "shared", 2
INCREMENTAL_ALTER_CONFIGS = 44
WITHOUT = ("--feature", "share.version=0", "--feature", "streams.version=0")
CASES = {"our controller": (KAFKAS,)}
KILLED = [OURS]
if "PENSTOCK_TEST_KAFKA_MORE" in os.environ:
    CASES["a controller of Kafka's"] = (CONTROLLER, KAFKAS)
    KILLED = [OURS, KAFKAS]

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.skipif(KAFKA, reason="it is about both"),
    pytest.mark.timeout(600),
]


class Mixed(Nodes):
    """kafka: who of them is Apache Kafka's."""

    def __init__(self, folder, kafka):
        super().__init__(folder, settings=SETTINGS, places=layout.places(3, ROLES), kafka=kafka)
        for number in kafka:
            self.all[number].format = WITHOUT


@pytest.fixture(scope="module", params=CASES, ids=lambda name: name.replace(" ", "-"))
def nodes(request, tmp_path_factory):
    with Mixed(tmp_path_factory.mktemp("mixed"), CASES[request.param]) as nodes:
        nodes.create(TOPIC, assignment=[[KAFKAS, OURS], [OURS, KAFKAS]])
        yield nodes


def write(nodes, count, **settings):
    """So many records to each partition, acknowledged by all in sync."""
    wanted = {"bootstrap.servers": nodes.bootstrap, "acks": "all", "enable.idempotence": True}
    producer = confluent_kafka.Producer(wanted | settings)
    if "transactional.id" in settings:
        producer.init_transactions(60)
        producer.begin_transaction()
    failed = []
    for at in range(COUNT * count):
        producer.produce(
            TOPIC, b"v%d" % at, partition=at % COUNT,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )  # fmt: skip
    if "transactional.id" in settings:
        producer.commit_transaction(60)
    assert producer.flush(60) == 0 and not failed, failed


def read(nodes, count):
    """How many a group reads, of what is committed."""
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": nodes.bootstrap, "group.id": "both", "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "isolation.level": "read_committed",
    })  # fmt: skip
    consumer.subscribe([TOPIC])
    found = 0
    while found < count:
        message = consumer.poll(60)
        assert message is not None and not message.error(), message and message.error()
        found += 1
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def test_each_replicates_what_the_other_leads(nodes):
    assert [one.leader for one in nodes.partitions(TOPIC).values()] == [KAFKAS, OURS]
    write(nodes, 50)
    write(nodes, 10, **{"transactional.id": "both"})
    assert read(nodes, COUNT * 60) == COUNT * 60
    nodes.wait(lambda: nodes.whole(TOPIC, COUNT), "both are in sync")


def test_a_change_is_decided_through_either_and_known_to_both(nodes):
    for number in (KAFKAS, OURS):
        change = {"name": "retention.ms", "config_operation": 0, "value": str(10_000_000 + number)}
        values = {"validate_only": False, "resources": [
            {"resource_type": 2, "resource_name": TOPIC, "configs": [change]}
        ]}  # fmt: skip
        (told,) = nodes.ask(INCREMENTAL_ALTER_CONFIGS, 1, values, number)["responses"]
        assert told["error_code"].upper() == "NONE", told
    assert nodes.brokers(KAFKAS) == nodes.brokers(OURS) == [KAFKAS, OURS]
    wanted = {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}
    ids = {str(nodes.ask(METADATA, 12, wanted, n)["topics"][0]["topic_id"]) for n in (KAFKAS, OURS)}
    assert len(ids) == 1


@pytest.mark.parametrize("gone", KILLED)
def test_each_leads_when_the_other_is_killed(nodes, gone):
    stays = KAFKAS + OURS - gone
    nodes.kill(gone)
    nodes.wait(
        lambda: {one.leader for one in nodes.partitions(TOPIC, stays).values()} == {stays},
        "the other leads",
    )
    write(nodes, 20)
    nodes.start(gone)
    nodes.wait(lambda: nodes.whole(TOPIC, COUNT), "both are in sync")


def test_kafkas_broker_leaves_in_order_and_all_bytes_are_the_same(nodes):
    assert nodes.stop(KAFKAS) == 143
    nodes.wait(lambda: nodes.brokers(OURS) == [OURS], "it has left")
    assert nodes.stop(OURS) == 0
    nodes.compare_replicas(TOPIC, COUNT)
