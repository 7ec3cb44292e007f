"""A compacted topic while it is written, read, cleaned, and while processes are killed: every
reader sees every key's latest value, offsets ascend, nothing is seen twice."""

import os
import signal
import threading
import time
from contextlib import suppress

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.broker_process import KAFKA, Broker

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="our cleaner is looked at"),
]
KEYS = 300
LIMIT_S = 60
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.05",
}
EAGER = {"log.cleaner.backoff.ms": "50", "offsets.topic.num.partitions": "1"}


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data", EAGER) as running:
        yield running


class Writer:
    """Counts up the values of KEYS keys. acked: key → the last one that was acknowledged."""

    def __init__(self, bootstrap, topic):
        self.acked = {}
        self.sent = 0
        self.errors = []
        self._topic = topic
        self._end = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 5000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._end.is_set():
            key = b"k%d" % (self.sent * 7919 % KEYS)
            value = b"%d %s" % (self.sent, os.urandom(60).hex().encode())
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.05)
                continue
            self.sent += 1
            if not self.sent % 50:
                self._producer.poll(0)
        self._producer.flush(LIMIT_S)

    def _delivered(self, error, message):
        if error is not None:
            self.errors.append(error)
        else:
            self.acked[message.key()] = int(message.value().split()[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end.set()
        self._producer.purge()
        self._thread.join()

    def finish(self):
        self._end.set()
        self._thread.join()
        assert not self.errors, self.errors[:3]

    def go_on(self, count):
        target, end = self.sent + count, time.monotonic() + LIMIT_S
        while self.sent < target:
            assert time.monotonic() < end, "the writer does not go on"
            time.sleep(0.01)


def holds(found, acked):
    return all(found.get(key, -1) >= number for key, number in acked.items())


def read_all(bootstrap, topic, acked=()):
    """The newest number of each key, from the beginning to the end that was there at first, and
    further to what replaced records of before; how many records; that end."""
    acked = dict(acked)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "log_level": 0})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), LIMIT_S)
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found, before, seen = {}, -1, 0
        end = time.monotonic() + LIMIT_S
        while before < high - 1 or not holds(found, acked):
            message = consumer.poll(0.2)
            assert time.monotonic() < end, f"stuck at {before} of {high}"
            if message is None or message.error():
                continue
            assert message.offset() > before, "an offset came again"
            before = message.offset()
            number = int(message.value().split()[0])
            assert number > found.get(message.key(), -1), "an older value behind a newer one"
            found[message.key()] = number
            seen += 1
        return found, seen, high
    finally:
        consumer.close()


def cleaner_pids(broker):
    found = []
    for pid in broker.pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"cleaner_process" in file.read():
                    found.append(pid)
        except OSError:
            continue
    return found


def cleaned_to(broker, topic):
    path = broker.files / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[0] == topic), 0)


def until(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_readers_see_every_latest_value_whatever_dies(broker):
    topic = broker.peer.create(1, COMPACTED, "squeezed")
    with Writer(broker.bootstrap, topic) as writer:
        kill_in_turn(broker, topic, writer)
        writer.finish()
    until(lambda: cleaned_to(broker, topic) > 60_000, "the cleaner does not go on")
    found, seen, high = read_all(broker.bootstrap, topic)
    assert found == writer.acked
    assert seen < high / 2
    broker.stop()  # in the middle of a swap, it may be: the next start finishes that
    broker.start()
    assert read_all(broker.bootstrap, topic)[0] == writer.acked
    folder = broker.files / f"{topic}-0"
    until(lambda: not [*folder.glob("*.swap")], "a swap is not finished")


def kill_in_turn(broker, topic, writer):
    """Rounds of writing and reading; after most of them something dies."""
    kills = 0
    for round_ in range(6):
        writer.go_on(15_000)
        acked = dict(writer.acked)
        try:
            read_all(broker.bootstrap, topic, acked)
        except KafkaException:
            continue  # it asked in the moment of a kill
        if round_ in (1, 3):
            until(lambda: cleaner_pids(broker), "nothing is cleaned")
            for pid in cleaner_pids(broker):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        elif round_ == 2:
            for pid in broker.pids()[1:]:
                with suppress(ProcessLookupError):  # a cleaner, which was done
                    os.kill(pid, signal.SIGKILL)
        elif round_ == 4:
            broker.kill()
            broker.start()
    assert kills


def test_a_damaged_segment_is_said_once_and_the_topic_is_served(broker):
    topic = broker.peer.create(1, {**COMPACTED, "min.cleanable.dirty.ratio": "1.0"}, "damaged")
    with Writer(broker.bootstrap, topic) as writer:
        writer.go_on(20_000)
        writer.finish()
    with open(broker.files / f"{topic}-0" / f"{0:020}.log", "r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 20)
    broker.peer.create(1, COMPACTED, "sound")
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    resource.add_incremental_config(
        ConfigEntry(
            "min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET
        )
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(LIMIT_S)
    until(lambda: "cleaning-failed" in broker.output(), "nobody says that it fails")
    with Writer(broker.bootstrap, "sound") as writer:
        writer.go_on(20_000)
        writer.finish()
    until(lambda: cleaned_to(broker, "sound") > 0, "the sound one waits for the damaged one")
    assert broker.output().count("cleaning-failed") == 1
    assert "CRC32C" in broker.output()
