"""The last node in sync of a partition comes back under its number with an empty disk: the others,
which have nearly everything, do not begin anew with it (KIP-966, KIP-858)."""

import shutil

import confluent_kafka as ck
import confluent_kafka.admin
import pytest

from tests.broker_process import KAFKA
from tests.cluster.nodes import Nodes

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(KAFKA, reason="the rule is ours"),
]
TOPIC, RECORDS, LAST = "kept", 30, 1
LIMIT_S = 60


@pytest.fixture
def nodes(tmp_path):
    with Nodes(tmp_path, settings={"offsets.topic.num.partitions": "1"}) as running:
        yield running


def write(nodes, begin, end):
    producer = ck.Producer({"bootstrap.servers": nodes.bootstrap, "acks": "all"})
    for number in range(begin, end):
        producer.produce(TOPIC, b"%d" % number, partition=0)
    assert producer.flush(LIMIT_S) == 0


def read(nodes):
    client = ck.Consumer({
        "bootstrap.servers": nodes.bootstrap, "group.id": "unused", "enable.partition.eof": True,
        "enable.auto.commit": False, "auto.offset.reset": "earliest",
    })  # fmt: skip
    client.assign([ck.TopicPartition(TOPIC, 0, 0)])
    found = []
    try:
        while (message := client.poll(LIMIT_S)) is not None:
            if error := message.error():
                assert error.code() == ck.KafkaError._PARTITION_EOF, error
                return found
            found.append(int(message.value()))
        raise AssertionError(f"nothing comes behind {len(found)} records")
    finally:
        client.close()


def test_what_the_other_one_has_is_kept(nodes):
    """It was away for the newest records, which are lost with the disk, and has all before them."""
    other, third = (number for number in nodes.all if number != LAST)
    nodes.create(TOPIC, assignment=[[LAST, other]], configs={"min.insync.replicas": "1"})
    write(nodes, 0, RECORDS)
    nodes.wait(lambda: nodes.level(TOPIC), "both have everything")
    nodes.kill(other)
    nodes.wait(lambda: nodes.partition(TOPIC, number=third).isr == [LAST], "it is away")
    write(nodes, RECORDS, RECORDS + 5)
    nodes.kill(LAST)
    nodes.start(other)
    nodes.wait(lambda: nodes.partition(TOPIC, number=third).leader == -1, "nobody leads")
    shutil.rmtree(nodes[LAST].data)
    nodes.start(LAST)
    nodes.wait(lambda: LAST in nodes.watermarks(TOPIC), "it has its replica, empty")
    admin = ck.admin.AdminClient({"bootstrap.servers": nodes.bootstrap})
    partition = ck.TopicPartition(TOPIC, 0)
    done = admin.elect_leaders(ck.ElectionType.UNCLEAN, [partition]).result(LIMIT_S)
    assert done[partition] is None, "nobody led before somebody asked for it"
    nodes.wait(lambda: nodes.whole(TOPIC) and nodes.level(TOPIC), "both are in sync")
    assert read(nodes) == list(range(RECORDS))
