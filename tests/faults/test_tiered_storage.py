"""Tiered storage of a whole appliance: closed segments in a folder that is the store, consumers
that read across the border, kills, a deletion and a return."""

import subprocess
import sys
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from tests.broker_process import KAFKA, Broker

pytestmark = pytest.mark.skipif(KAFKA, reason="its store is a class of its own")
VALUE = 50_000
SOME = 120  # some segments of a MiB


@pytest.fixture
def broker(tmp_path):
    settings = {
        "remote.log.storage.system.enable": "true",
        "penstock.remote.storage.url": f"file://{tmp_path}/store",
        "remote.log.manager.task.interval.ms": "50",
        "log.retention.check.interval.ms": "50",
        "log.segment.delete.delay.ms": "0",
        "penstock.io.processes": "2",
    }
    broker = Broker(tmp_path / "data", settings)
    try:
        yield broker.start()
    finally:
        if broker.process.poll() is None:
            broker.kill()


def admin(broker):
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(broker, name="t", **settings):
    config = {
        "remote.storage.enable": "true", "segment.bytes": "1048576",
        "local.retention.bytes": "1", "retention.ms": "-1", **settings,
    }  # fmt: skip
    client = admin(broker)
    [made] = client.create_topics([NewTopic(name, 1, 1, config=config)]).values()
    made.result(60)


def produce(broker, begin, some, name="t"):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for number in range(begin, begin + some):
        producer.produce(name, value_of(number))
    assert producer.flush(120) == 0


def value_of(number):
    return b"%08d" % number + bytes((number * 7 + at) % 256 for at in range(256)) * (VALUE // 256)


def consume(broker, some, offset=0, name="t"):
    """Values from an offset on, by a consumer that may be told to go on at the earliest."""
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "error",
        "fetch.message.max.bytes": 300_000,
    })  # fmt: skip
    consumer.assign([TopicPartition(name, 0, offset)])
    found = []
    end = time.monotonic() + 120
    while len(found) < some:
        assert time.monotonic() < end, f"{len(found)} of {some} records came"
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            if not message.error().retriable() and message.error().code() > 0:
                raise KafkaException(message.error())
            continue
        assert message.offset() == offset + len(found)
        found.append(message.value())
    consumer.close()
    return found


def wait_until(holds, what, limit_s=120):
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def local_segments(broker, name="t"):
    return sorted((broker.files / f"{name}-0").glob("*.log"))


def remote_logs(broker):
    return sorted((broker.data.parent / "store").rglob("*.log"))


def tiered(broker):
    """Wait until all closed segments are in the store and only the active one is here; how many."""
    wait_until(lambda: len(remote_logs(broker)) > 3, "segments were not copied")
    wait_until(lambda: len(local_segments(broker)) == 1, "copied segments were not dropped")
    return len(remote_logs(broker))


def test_a_consumer_reads_across_the_border_whatever_is_killed(broker):
    create(broker)
    produce(broker, 0, SOME)
    tiered(broker)
    assert consume(broker, SOME) == [value_of(number) for number in range(SOME)]
    for again in range(2):
        broker.kill()
        broker.start()
        produce(broker, SOME * (again + 1), SOME)
        wait_until(lambda: len(local_segments(broker)) == 1, "copied segments were not dropped")
        every = SOME * (again + 2)
        assert consume(broker, every) == [value_of(number) for number in range(every)]
    assert consume(broker, 10, SOME // 2) == [value_of(SOME // 2 + n) for n in range(10)]


def test_a_deleted_topic_returns_with_its_remote_records_or_leaves_the_store(broker):
    create(broker)
    produce(broker, 0, SOME)
    copied = tiered(broker)
    delete(broker)
    assert len(remote_logs(broker)) == copied, "it can still come back"
    penstock(broker, "topic", "undelete", "t")
    wait_until(lambda: local_segments(broker), "it did not come back")
    assert consume(broker, SOME) == [value_of(number) for number in range(SOME)]
    assert broker.stop() == 0
    broker.settings["penstock.topic.trash.retention.ms"] = "0"
    broker.start()
    delete(broker)
    wait_until(lambda: not remote_logs(broker), "objects of a deleted topic were left")


def delete(broker):
    client = admin(broker)
    [gone] = client.delete_topics(["t"]).values()
    gone.result(60)


def penstock(broker, *words):
    command = [sys.executable, "-m", "console", *words, "--bootstrap-server", broker.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def test_what_does_not_fit_is_refused_by_name(broker):
    for settings, words in (
        ({"cleanup.policy": "compact"}, "only supports topics with cleanup.policy=delete"),
        ({"retention.bytes": "10", "local.retention.bytes": "11"}, "more than retention.bytes"),
    ):
        with pytest.raises(KafkaException, match=words):
            create(broker, "wrong", **settings)
    create(broker)
    off = ConfigEntry("remote.storage.enable", "false", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=[off])
    client = admin(broker)
    [changed] = client.incremental_alter_configs([resource]).values()
    with pytest.raises(KafkaException, match="without deleting remote data"):
        changed.result(60)
    assert not remote_logs(broker)
