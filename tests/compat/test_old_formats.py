"""A partition whose first segments are of message formats 0 and 1, asked for by stock clients. With
PENSTOCK_TEST_BROKER=kafka Apache Kafka 4.3 tells librdkafka the same; it sends the old entries as
they are, so kafka-python needs xxhash for them."""

from random import Random

import confluent_kafka as confluent
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition

from appliance.wire.records import NewRecord, build_batch
from tests.broker_process import KAFKA, Broker
from tests.old_formats import random_set

TOPIC = "flights"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The running broker, and every message of the partition."""
    broker = Broker(tmp_path_factory.mktemp("old") / "data")
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        settings = {"retention.ms": "-1"}
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=settings)]).values():
            future.result(30)
    told = exchange(broker.files / f"{TOPIC}-0")
    with broker:
        yield broker, told


def exchange(folder):
    """Format 0 in one segment, format 1 and then 2 in the next."""
    first, told = random_set(Random(4), 0, 200, 0)
    second = told[-1].offset + 1
    more, rest = random_set(Random(5), second, 200, 1)
    told += rest
    end = told[-1].offset + 1
    for path in folder.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (folder / f"{0:020d}.log").write_bytes(first)
    newest = build_batch([NewRecord(1_700_000_000_000, b"k", b"2")], base_offset=end)
    (folder / f"{second:020d}.log").write_bytes(more + newest)
    return [*told, (end, 1_700_000_000_000, b"k", b"2")]


def test_librdkafka_reads_every_message_as_it_was(served):
    broker, told = served
    one = confluent.Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False,
        "log_level": 0,
    })  # fmt: skip
    one.assign([confluent.TopicPartition(TOPIC, 0, 0)])
    found = []
    while len(found) < len(told):
        got = one.poll(30)
        assert got is not None
        assert not got.error(), got.error()
        found.append((got.offset(), got.timestamp()[1], got.key(), got.value()))
    for number in (0, 7, 250, len(told) - 1):
        one.seek(confluent.TopicPartition(TOPIC, 0, number))
        assert one.poll(30).offset() == number
    one.close()
    assert [place[0] for place in found] == list(range(len(told)))
    # An absent time is 0 or -1 to librdkafka, by the type of the time.
    assert [(*place[:1], max(place[1], 0), *place[2:]) for place in found] == [
        (one[0], max(one[1], 0), one[2], one[3]) for one in told
    ]


@pytest.mark.skipif(KAFKA, reason="kafka-python needs xxhash for lz4 of format 0")
def test_kafka_python_reads_them_and_finds_them_by_time(served):
    broker, told = served
    place = PythonPartition(TOPIC, 0)
    one = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None)
    one.assign([place])
    one.seek(place, 0)
    found = []
    while len(found) < len(told):
        got = one.poll(30_000)[place]
        found += [(got.offset, got.key, got.value) for got in got]
    assert found == [(one[0], one[2], one[3]) for one in told]
    assert one.beginning_offsets([place]) == {place: 0}
    assert one.end_offsets([place]) == {place: len(told)}
    for time in (1_500_000_000_000, 1_500_000_000_500, 1_600_000_000_300, 1_700_000_000_000):
        first = next(one for one in told if one[1] >= time)
        there = one.offsets_for_times({place: time})[place]
        assert (there.offset, there.timestamp) == (first[0], first[1])
    one.close()
