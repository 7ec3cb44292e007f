"""The local client: defaults that are safe, and errors that are not swallowed."""

import confluent_kafka as ck
import pytest

import penstock


@pytest.fixture(scope="module")
def link(appliance):
    return penstock.connect(appliance.bootstrap)


def test_what_was_produced_can_be_read_when_the_block_is_left(link):
    with link.producer() as producer:
        for number in range(100):
            producer.produce("client.a", b"%d" % number, key=b"k")
    read = list(link.read("client.a"))
    assert [m.value() for m in read] == [b"%d" % n for n in range(100)]
    assert [m.offset() for m in link.read("client.a", offset=98)] == [98, 99]


def test_a_record_that_is_refused_is_told(link):
    producer = link.producer(message_max_bytes=5_000_000)
    with pytest.raises(ck.KafkaException) as told, producer as one:
        one.produce("client.b", b"x" * 2_000_000)
    assert told.value.args[0].code() == ck.KafkaError.MSG_SIZE_TOO_LARGE


def test_a_topic_that_is_not_there_is_told_and_not_made(link):
    with pytest.raises(ck.KafkaException) as told:
        link.consumer("client.none")
    assert told.value.args[0].code() == ck.KafkaError.UNKNOWN_TOPIC_OR_PART
    assert "client.none" not in link.admin().list_topics(timeout=10).topics


def test_the_address_comes_from_the_argument_the_environment_or_the_default(monkeypatch):
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", "one:1")
    assert penstock.connect("two:2").bootstrap == "two:2"
    assert penstock.connect().bootstrap == "one:1"
    monkeypatch.delenv("PENSTOCK_BOOTSTRAP")
    assert penstock.connect().bootstrap == "localhost:9092"
