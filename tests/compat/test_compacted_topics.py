"""Compacted topics with clients and tools that are not ours: Kafka's dump-log and console consumer,
confluent-kafka, and commits of offsets without end."""

import os
import re
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from benchmarks import kafka
from tests import java_tools
from tests.broker_process import KAFKA, Broker

LIMIT_S = 60
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="our cleaner is looked at"),
    pytest.mark.skipif("PENSTOCK_TEST_BOOTSTRAP" in os.environ, reason="needs its own settings"),
]
needs_java = pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.05",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": str(1 << 20),
}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def checkpointed(broker, topic):
    path = broker.files / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[0] == topic), 0)


def until(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def settled(broker, topic):
    """Wait until every full segment is compacted."""

    def active():
        return max(int(path.stem) for path in (broker.files / f"{topic}-0").glob("*.log"))

    until(lambda: checkpointed(broker, topic) >= active() > 0, f"{topic} is not compacted")


@pytest.fixture(scope="module")
def squeezed(tmp_path_factory):
    """A broker with the compacted topic `squeezed`, every codec in it; its latest values."""
    latest = {}
    with Broker(tmp_path_factory.mktemp("squeezed") / "data", SETTINGS) as broker:
        topic = broker.peer.create(1, COMPACTED, "squeezed")
        for number in range(10):
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "compression.type": CODECS[number % 5],
                    "enable.idempotence": True,
                    "linger.ms": 20,
                    "batch.size": 20_000,
                }
            )
            for n in range(4000):
                key = f"key-{(n * 37 + number) % 500}"
                value = None if n % 501 == 500 else f"{number}-{n} " + os.urandom(60).hex()
                producer.produce(topic, value, key, headers=[("n", str(n))])
                latest[key] = value
                if not n % 500:
                    producer.flush(LIMIT_S)
            producer.flush(LIMIT_S)
        settled(broker, topic)
        yield broker, topic, latest


def alive(latest):
    return {key: value for key, value in latest.items() if value is not None}


def read(broker, topic):
    """(key, value) of each record that is left, in the order of their offsets."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found, offset = [], -1
    while offset < 39_999:
        message = consumer.poll(LIMIT_S)
        assert message is not None and not message.error()
        offset = message.offset()
        value = message.value()
        found.append((message.key().decode(), None if value is None else value.decode()))
        assert message.headers()
    consumer.close()
    return found


def test_confluent_kafka_reads_every_latest_value(squeezed):
    broker, topic, latest = squeezed
    assert alive(dict(read(broker, topic))) == alive(latest)


@needs_java
def test_the_console_consumer_reads_every_latest_value(squeezed):
    broker, topic, latest = squeezed
    said = java_tools.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--formatter-property", "print.key=true", "--timeout-ms", "60000"),
        *("--max-messages", str(len(read(broker, topic)))),
    ).stdout
    found = dict(line.split("\t", 1) for line in said.splitlines() if "\t" in line)
    assert {key: value for key, value in found.items() if value != "null"} == alive(latest)


@needs_java
def test_dump_log_finds_nothing_wrong(squeezed):
    broker, topic, _ = squeezed
    folder = broker.files / f"{topic}-0"
    files = [
        path
        for suffix in ("log", "index", "timeindex")
        for path in sorted(folder.glob(f"*.{suffix}"))[:-1]
        if path.stat().st_size
    ]
    done = java_tools.tool(
        "org.apache.kafka.tools.DumpLogSegments",
        *("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files))),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "isvalid: false" not in done.stdout
    for complaint in ("mismatch", "not found", "out of order"):
        assert complaint not in done.stdout.lower()
    offsets = [int(text) for text in re.findall(r"^\| offset: (\d+)", done.stdout, re.M)]
    assert 400 < len(offsets) < 5000
    assert offsets == sorted(set(offsets))


def test_commits_without_end_take_bounded_room_and_survive_a_restart(squeezed):
    broker, topic, _ = squeezed
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "tireless",
            "enable.auto.commit": False,
        }
    )
    folder = broker.files / "__consumer_offsets-0"

    def segments():
        return len(list(folder.glob("*.log"))) if folder.exists() else 0

    count = 0
    end = time.monotonic() + LIMIT_S
    while segments() < 2 and checkpointed(broker, "__consumer_offsets") == 0:
        assert time.monotonic() < end
        for _ in range(200):
            count += 1
            place = TopicPartition(topic, 0, count, "m" * 3000)
            consumer.commit(offsets=[place], asynchronous=True)
        consumer.commit(offsets=[place], asynchronous=False)
    settled(broker, "__consumer_offsets")
    old = sum(path.stat().st_size for path in sorted(folder.glob("*.log"))[:-1])
    assert old < 100_000, "a handful of groups is left of a megabyte of commits"
    consumer.close()
    broker.stop()
    broker.start()
    again = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "tireless"})
    assert again.committed([TopicPartition(topic, 0)], LIMIT_S)[0].offset == count
    again.close()
