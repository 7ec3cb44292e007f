"""A deleted topic comes back to a cluster with every record and every committed offset, whoever is
the active controller by then, and whichever nodes hold its folders."""

import json

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.broker_process import KAFKA
from tests.cluster.nodes import LIMIT_S, Nodes

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(KAFKA, reason="Apache Kafka brings nothing back"),
]
PARTITIONS, RECORDS = 3, 60
A_TRY_S = 5
AGAIN = {"NOT_CONTROLLER", "_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT"}
"""What a client may be told while a controller is elected."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    settings = dict.fromkeys(
        ("offsets.topic.num.partitions", "transaction.state.log.num.partitions"), "3"
    )
    with Nodes(tmp_path_factory.mktemp("undelete"), settings=settings) as running:
        yield running


def admin_of(nodes):
    """One that knows only nodes that live."""
    places = (f"127.0.0.1:{nodes[number].port}" for number in nodes.living)
    return AdminClient({"bootstrap.servers": ",".join(places)})


def fill(nodes, topic):
    """Records in each partition, and what a group has committed in each."""
    producer = Producer({"bootstrap.servers": nodes.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(LIMIT_S) == 0
    consumer = Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": topic})
    places = [TopicPartition(topic, number, 7 + number) for number in range(PARTITIONS)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def content(nodes, topic):
    """What is in it, and what the group has committed."""
    settings = {"bootstrap.servers": nodes.bootstrap, "group.id": topic,
                "enable.auto.commit": False, "enable.partition.eof": True}  # fmt: skip
    consumer = Consumer(settings)
    try:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        committed = [one.offset for one in consumer.committed(places, LIMIT_S)]
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        values, ends = [], 0
        while ends < PARTITIONS:
            message = consumer.poll(LIMIT_S)
            assert message is not None, "no record comes"
            if message.error() is None:
                values.append(int(message.value()))
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                ends += 1
        return sorted(values), committed
    finally:
        consumer.close()


WHOLE = (list(range(RECORDS)), [7, 8, 9])


def delete(nodes, topic):
    admin = admin_of(nodes)
    admin.delete_topics([topic])[topic].result(LIMIT_S)


def back(nodes, topic):
    """Bring it back; the error that is no matter of an election, None: it is there."""
    unanswered = 0

    def asked():
        """A client that was told of a controller that is gone waits for it, so it gets little
        time; what was not answered may have been done all the same."""
        nonlocal unanswered
        admin = admin_of(nodes)
        wanted = NewTopic(topic, num_partitions=-1, config={"penstock.undelete": "true"})
        try:
            admin.create_topics([wanted], request_timeout=A_TRY_S)[topic].result(LIMIT_S)
        except KafkaException as refused:
            error = refused.args[0]
            if error.name() in AGAIN:
                unanswered += 1
                return None
            if error.name() == "TOPIC_ALREADY_EXISTS" and unanswered:
                return [None]
            return [error]
        return [None]

    (error,) = nodes.wait(asked, f"somebody decides on {topic}")
    return error


def listed(nodes, number):
    """Names of the deleted topics that this node tells of."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{nodes[number].port}"})
    resource = ConfigResource(ResourceType.TOPIC, "penstock:deleted")
    found = admin.describe_configs([resource])[resource].result(LIMIT_S)
    return [json.loads(entry.value)["name"] for entry in found.values()]


def folders(nodes, topic):
    """(node, partition) of each folder of it that is kept."""
    tops = {number: node.data for number, node in nodes.all.items()}
    return {
        (number, int(path.name.removeprefix(f"{topic}-").partition(".")[0]))
        for number, top in tops.items()
        for path in top.glob(f"{topic}-*-delete")
    }


def test_another_controller_brings_it_back(nodes):
    nodes.create("kept", PARTITIONS)
    fill(nodes, "kept")
    delete(nodes, "kept")
    every = {(number, index) for number in nodes.all for index in range(PARTITIONS)}
    nodes.wait(lambda: folders(nodes, "kept") == every, "all nodes have put their folders away")
    assert [listed(nodes, number) for number in nodes.all] == [["kept"]] * 3
    gone = nodes.quorum_leader()
    nodes.kill(gone)
    assert back(nodes, "kept") is None
    found = nodes.wait(lambda: nodes.partitions("kept"), "it is known")
    assert all(gone not in one.isr and one.leader > 0 for one in found.values()), found
    assert content(nodes, "kept") == WHOLE
    nodes.start(gone)
    nodes.wait(lambda: nodes.whole("kept", PARTITIONS), "all are in sync")
    nodes.wait(lambda: nodes.level("kept", PARTITIONS), "all replicas are level")
    nodes.compare_replicas("kept", PARTITIONS)
    assert content(nodes, "kept") == WHOLE
    nodes.wait(lambda: not any(listed(nodes, one) for one in nodes.all), "nobody keeps it twice")


def test_who_holds_a_partition_alone_is_asked_and_waited_for(nodes):
    """One of them is not there when the topic goes: it hears of that at its start."""
    nodes.create("alone", assignment=[[1], [2], [3]])
    fill(nodes, "alone")
    away = next(number for number in nodes.all if number != nodes.quorum_leader())
    nodes.kill(away)
    nodes.wait(lambda: nodes.partition("alone", away - 1).leader < 0, "nobody leads it")
    delete(nodes, "alone")
    error = back(nodes, "alone")
    assert error is not None
    assert error.name() == "ELIGIBLE_LEADERS_NOT_AVAILABLE", error
    assert f"node {away}" in error.str()
    assert f"alone-{away - 1}" in error.str()
    nodes.start(away)
    assert back(nodes, "alone") is None
    nodes.wait(lambda: nodes.whole("alone", PARTITIONS), "all have a leader")
    assert content(nodes, "alone") == WHOLE


def ends(nodes, topic, level):
    """The offset where readers of this level end, in each partition; none while a new leader does
    not know yet."""
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(PARTITIONS)}
    admin = admin_of(nodes)
    told = admin.list_offsets(asked, isolation_level=level)
    try:
        return [told[place].result(LIMIT_S).offset for place in asked]
    except KafkaException as error:
        if error.args[0].name() != "OFFSET_NOT_AVAILABLE":
            raise
        return []


def test_transactions_that_ended_meanwhile_end_there_whoever_coordinates_them(nodes):
    nodes.create("open", PARTITIONS)
    some, every = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
    producers = []
    for name in ("ended", "still"):
        settings = {"bootstrap.servers": nodes.bootstrap, "transactional.id": name}
        producers.append(Producer(settings))
        producers[-1].init_transactions(LIMIT_S)
        producers[-1].begin_transaction()
        for number in range(PARTITIONS):
            producers[-1].produce("open", name.encode(), partition=number)
        assert producers[-1].flush(LIMIT_S) == 0
    ended, still = producers
    delete(nodes, "open")
    every_folder = {(number, index) for number in nodes.all for index in range(PARTITIONS)}
    nodes.wait(lambda: folders(nodes, "open") == every_folder, "all have put their folders away")
    ended.commit_transaction(LIMIT_S)
    assert back(nodes, "open") is None
    nodes.wait(lambda: nodes.whole("open", PARTITIONS), "all are in sync")
    nodes.wait(lambda: ends(nodes, "open", some) == [1] * PARTITIONS, "the first one is aborted")
    assert ends(nodes, "open", every) == [3] * PARTITIONS
    still.commit_transaction(LIMIT_S)
    nodes.wait(lambda: ends(nodes, "open", some) == [4] * PARTITIONS, "the other one has ended")
