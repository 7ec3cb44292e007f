"""Stock clients at the ceilings of groups and transactional ids: they are told at once and go on
with what they have; nobody waits for ever."""

import kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka.errors import GroupMaxSizeReachedError, KafkaError

from appliance.base import errors
from penstock.local import Appliance

SETTINGS = {
    "penstock.groups.max": "1",
    "penstock.transactional.ids.max": "1",
    "offsets.topic.num.partitions": "1",
    "penstock.io.processes": "1",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with Appliance(tmp_path_factory.mktemp("bounded") / "data", SETTINGS) as one:
        producer = Producer({"bootstrap.servers": one.bootstrap})
        producer.produce("t", b"v")
        assert producer.flush(30) == 0
        yield one.bootstrap


def begin(address, name, timeout):
    producer = Producer({"bootstrap.servers": address, "transactional.id": name})
    producer.init_transactions(timeout)
    producer.begin_transaction()
    producer.produce("t", b"v")
    producer.commit_transaction(30)


def test_producers_with_a_new_id_are_told_and_others_go_on(address):
    begin(address, "x", 30)
    with pytest.raises(KafkaException) as refused:
        begin(address, "y", 1)
    assert refused.value.args[0].code() == errors.POLICY_VIOLATION
    other = kafka.KafkaProducer(bootstrap_servers=address, transactional_id="z")
    with pytest.raises(KafkaError, match="PolicyViolation"):
        other.init_transactions()
    other.close(timeout=1)
    begin(address, "x", 30)


def commit(address, group):
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    try:
        return consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumers_of_a_new_group_are_told_and_others_go_on(address, protocol):
    assert commit(address, "g")[0].error is None
    with pytest.raises(KafkaException) as refused:
        commit(address, "h")
    assert refused.value.args[0].code() == errors.GROUP_MAX_SIZE_REACHED
    consumer = Consumer({"bootstrap.servers": address, "group.id": "h", "group.protocol": protocol})
    consumer.subscribe(["t"])
    found = consumer.poll(30)
    assert "maximum size" in str(found.error())
    consumer.close()
    other = kafka.KafkaConsumer("t", bootstrap_servers=address, group_id="h")
    with pytest.raises(GroupMaxSizeReachedError):
        other.poll(timeout_ms=30_000)
    other.close()
    assert commit(address, "g")[0].error is None
