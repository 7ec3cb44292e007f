"""Stock clients and what is led by different nodes: transactions whose coordinator, partitions and
group are on three of them, groups whose coordinator dies, Apache Kafka's way to the leader."""

import itertools

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from appliance.coordinators.runtime.kind import partition_of
from tests.cluster.nodes import Nodes

OFFSETS, STATE = "__consumer_offsets", "__transaction_state"
SIX = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "group.initial.rebalance.delay.ms": "0",
}
QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20}
FETCH_LIMIT_S = 60


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("nodes"), settings=SIX) as made:
        for name in (OFFSETS, STATE):
            made.create(name, assignment=[_from(n % 3 + 1) for n in range(6)])
        made.create("t", assignment=[_from(n + 1) for n in range(3)])
        yield made


def _from(first):
    """All three, this one first."""
    return [(first - 1 + n) % 3 + 1 for n in range(3)]


def name_of(nodes, topic, leader, prefix):
    """A name whose coordinator this node is now."""
    led = {index for index, one in nodes.partitions(topic).items() if one.leader == leader}
    assert led, f"node {leader} leads nothing of {topic}"
    return next(
        name for name in (f"{prefix}{n}" for n in itertools.count()) if partition_of(name, 6) in led
    )


def leaders(nodes, topic):
    return {one.leader for one in nodes.partitions(topic).values()}


def producer(nodes, name):
    made = Producer({
        "bootstrap.servers": nodes.bootstrap, "transactional.id": name,
        "transaction.timeout.ms": 60_000, **QUICK,
    })  # fmt: skip
    made.init_transactions(FETCH_LIMIT_S)
    return made


def consumer(nodes, group):
    return Consumer({
        "bootstrap.servers": nodes.bootstrap, "group.id": group, "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "isolation.level": "read_committed",
        "fetch.wait.max.ms": 100, **QUICK,
    })  # fmt: skip


def read(nodes, count, topic="t", partitions=3):
    """So many committed values, by partition."""
    reader = consumer(nodes, "reads")
    reader.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
    found = {}
    while sum(map(len, found.values())) < count:
        message = reader.poll(FETCH_LIMIT_S)
        assert message is not None, found
        assert message.error() is None, message.error()
        found.setdefault(message.partition(), []).append(message.value().decode())
    reader.close()
    return found


def retried(step, *given):
    """A step of a transaction, until it is not told to be tried again."""
    while True:
        try:
            return step(*given)
        except KafkaException as why:
            if not why.args[0].retriable():
                raise


def test_a_transaction_ends_in_partitions_of_all_nodes_and_takes_a_groups_offsets(nodes):
    name, group = name_of(nodes, STATE, 1, "txn"), name_of(nodes, OFFSETS, 2, "group")
    writer, of_group = producer(nodes, name), consumer(nodes, group)
    of_group.subscribe(["t"])
    while not of_group.assignment():
        of_group.poll(0.1)
    for number, commit in enumerate((True, False, True)):
        writer.begin_transaction()
        for index in range(3):
            writer.produce("t", f"{number}-{index}", partition=index)
        offsets = [TopicPartition("t", 0, number + 1)]
        metadata = of_group.consumer_group_metadata()
        retried(writer.send_offsets_to_transaction, offsets, metadata, FETCH_LIMIT_S)
        retried(writer.commit_transaction if commit else writer.abort_transaction, FETCH_LIMIT_S)
    assert read(nodes, 6) == {index: [f"0-{index}", f"2-{index}"] for index in range(3)}
    (committed,) = of_group.committed([TopicPartition("t", 0)], FETCH_LIMIT_S)
    assert committed.offset == 3
    of_group.close()


def test_a_decided_transaction_ends_when_a_partitions_leader_dies(nodes):
    nodes.create("d", assignment=[_from(n + 1) for n in range(3)])
    name = name_of(nodes, STATE, 1, "dies")
    writer = producer(nodes, name)
    writer.begin_transaction()
    for index in range(3):
        writer.produce("d", f"first-{index}", partition=index)
    writer.flush(FETCH_LIMIT_S)
    nodes.kill(3)
    retried(writer.commit_transaction, FETCH_LIMIT_S)
    writer.begin_transaction()
    for index in range(3):
        writer.produce("d", f"second-{index}", partition=index)
    retried(writer.commit_transaction, FETCH_LIMIT_S)
    found = read(nodes, 6, "d")
    assert found == {index: [f"first-{index}", f"second-{index}"] for index in range(3)}
    nodes.start(3)
    for topic in ("d", OFFSETS, STATE):
        nodes.wait(lambda topic=topic: nodes.whole(topic), f"{topic} is whole again")


def test_a_transaction_goes_on_when_its_coordinator_dies(nodes):
    nodes.create("c", assignment=[_from(n + 1) for n in range(3)])
    leader = min(leaders(nodes, STATE) & leaders(nodes, OFFSETS))
    name, group = name_of(nodes, STATE, leader, "moves"), name_of(nodes, OFFSETS, leader, "moving")
    writer, of_group = producer(nodes, name), consumer(nodes, group)
    of_group.assign([TopicPartition("c", 0, 0)])
    of_group.commit(offsets=[TopicPartition("c", 0, 7)], asynchronous=False)
    writer.begin_transaction()
    for index in range(3):
        writer.produce("c", f"first-{index}", partition=index)
    writer.flush(FETCH_LIMIT_S)
    nodes.kill(leader)
    retried(writer.commit_transaction, FETCH_LIMIT_S)
    (committed,) = of_group.committed([TopicPartition("c", 0)], FETCH_LIMIT_S)
    assert committed.offset == 7
    assert read(nodes, 3, "c") == {index: [f"first-{index}"] for index in range(3)}
    of_group.close()
    nodes.start(leader)
    for topic in ("c", OFFSETS, STATE):
        nodes.wait(lambda topic=topic: nodes.whole(topic), f"{topic} is whole again")


def test_lists_of_all_nodes_are_the_whole(nodes):
    groups = {n: name_of(nodes, OFFSETS, n, "listed") for n in leaders(nodes, OFFSETS)}
    assert len(groups) > 1
    for group in groups.values():
        made = consumer(nodes, group)
        made.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        made.close()
    for leader, group in groups.items():
        answer = nodes.ask(16, 4, {"states_filter": []}, leader)
        assert group in [one["group_id"] for one in answer["groups"]]
        for other in {1, 2, 3} - {leader}:
            answer = nodes.ask(16, 4, {"states_filter": []}, other)
            assert answer["error_code"] == "NONE"
            assert group not in [one["group_id"] for one in answer["groups"]]
            (told,) = nodes.ask(42, 2, {"groups_names": [group]}, other)["results"]
            assert told["error_code"] == "NOT_COORDINATOR"
