"""Deletion and return of a topic while everything is killed with -9: afterwards it is there, or it
can be brought back, with every acknowledged record and what a group committed."""

import json
import subprocess
import sys
import time

import pytest
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.broker_process import KAFKA, Broker

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="Apache Kafka brings nothing back"),
]
NAME, PARTITIONS, RECORDS = "kept", 3, 60
LIMIT_S = 60


def admin_of(broker):
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def back(broker):
    asked = NewTopic(NAME, num_partitions=-1, config={"penstock.undelete": "true"})
    admin = admin_of(broker)  # its requests end with it
    admin.create_topics([asked])[NAME].result(LIMIT_S)


def exists(broker):
    return NAME in admin_of(broker).list_topics(timeout=LIMIT_S).topics


def delete(broker):
    admin = admin_of(broker)
    admin.delete_topics([NAME])[NAME].result(LIMIT_S)


def deleted(broker):
    resource = ConfigResource(ResourceType.TOPIC, "penstock:deleted")
    admin = admin_of(broker)
    found = admin.describe_configs([resource])[resource].result(LIMIT_S)
    return [json.loads(entry.value) for entry in found.values()]


def fill(broker):
    topic = NewTopic(NAME, PARTITIONS, config={"retention.ms": "-1"})
    admin = admin_of(broker)
    admin.create_topics([topic])[NAME].result(LIMIT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(NAME, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(LIMIT_S) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition(NAME, 1, 7)], asynchronous=False)
    consumer.close()


def content(broker):
    """What is in it, and what the group has committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        place = TopicPartition(NAME, 1)
        (committed,) = consumer.committed([place], LIMIT_S)
        consumer.assign([TopicPartition(NAME, number, 0) for number in range(PARTITIONS)])
        values, ends = [], 0
        while ends < PARTITIONS:
            message = consumer.poll(LIMIT_S)
            assert message is not None, "no record comes"
            if message.error() is None:
                values.append(int(message.value()))
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                ends += 1
        return sorted(values), committed.offset
    finally:
        consumer.close()


CHURN = """
import sys
from confluent_kafka.admin import AdminClient, NewTopic
admin = AdminClient({"bootstrap.servers": sys.argv[1]})
name = sys.argv[2]
while True:
    admin.delete_topics([name])[name].result(30)
    print("done", flush=True)
    again = NewTopic(name, num_partitions=-1, config={"penstock.undelete": "true"})
    admin.create_topics([again])[name].result(30)
    print("done", flush=True)
"""
WHOLE = (list(range(RECORDS)), 7)


@pytest.mark.parametrize("moment", [0, 1, 4])
def test_everything_is_killed_while_a_topic_goes_and_comes(tmp_path, moment):
    broker = Broker(tmp_path / "data")
    with broker:
        fill(broker)
        with subprocess.Popen(
            [sys.executable, "-c", CHURN, broker.bootstrap, NAME], stdout=subprocess.PIPE
        ) as client:
            for _ in range(moment + 1):
                assert client.stdout.readline() == b"done\n"
            broker.kill()
            client.kill()  # or it would send again what was not answered
        broker.start()
        if not exists(broker):
            (listed,) = deleted(broker)
            assert (listed["name"], listed["records"]) == (NAME, RECORDS)
            back(broker)
        assert content(broker) == WHOLE
        delete(broker)
        broker.stop()
        broker.start()
        back(broker)
        assert content(broker) == WHOLE
        assert deleted(broker) == []


def writing(broker, name, *places):
    """A producer whose transaction has a record in each of these."""
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": name}
    producer = Producer(settings)
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    for topic, partition in places:
        producer.produce(topic, name.encode(), partition=partition)
    assert producer.flush(LIMIT_S) == 0
    return producer


def ends_at(broker, level):
    """The offsets where readers of this level end, by partition."""
    asked = {TopicPartition(NAME, number): OffsetSpec.latest() for number in range(PARTITIONS)}
    admin = admin_of(broker)
    told = admin.list_offsets(asked, isolation_level=level)
    return {place.partition: one.result(LIMIT_S).offset for place, one in told.items()}


def seen(broker, topic, partition):
    """What a read-committed reader sees of it."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "see", "enable.partition.eof": 1}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, 0)])
    values = []
    while (message := consumer.poll(LIMIT_S)).error() is None:
        values.append(message.value())
    consumer.close()
    return values


def test_transactions_that_were_open_when_their_topic_went(tmp_path):
    """Of one that has ended meanwhile nobody knows how, so its records are dropped there, and
    readers go on; one that is open still ends as it wants, everywhere."""
    with Broker(tmp_path / "data", {"penstock.io.processes": "2"}) as broker:
        admin = admin_of(broker)
        topics = [NewTopic(NAME, PARTITIONS), NewTopic("other", 1)]
        for made in admin.create_topics(topics).values():
            made.result(LIMIT_S)
        ended = writing(broker, "ended", *((NAME, n) for n in range(PARTITIONS)), ("other", 0))
        still = writing(broker, "still", (NAME, 1), ("other", 0))
        delete(broker)
        ended.commit_transaction(LIMIT_S)
        back(broker)
        some, every = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
        end = time.monotonic() + LIMIT_S
        while ends_at(broker, some) != {0: 2, 1: 1, 2: 2}:
            assert time.monotonic() < end, ends_at(broker, some)
            time.sleep(0.01)
        assert ends_at(broker, every) == {0: 2, 1: 3, 2: 2}
        still.commit_transaction(LIMIT_S)
        assert [seen(broker, NAME, n) for n in range(PARTITIONS)] == [[], [b"still"], []]
        assert seen(broker, "other", 0) == [b"ended", b"still"]
