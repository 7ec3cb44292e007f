"""Apache Kafka opens a folder that we were compacting, our half-done swap included, and we open one
that it compacted."""

import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.logstore import cleanable, swap
from appliance.logstore.compaction import Compactor
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import NewRecord, build_batch, iter_records, read_header
from benchmarks import kafka

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]
LIMIT_S = 60
SEGMENT = 1 << 20
OURS_END = 3000
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(SEGMENT),
    "min.cleanable.dirty.ratio": "0.01",
}


def test_both_ways(tmp_path):
    node = kafka.Kafka(tmp_path / "data", heap="512m", log_cleaner_backoff_ms="200")
    with node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        made = [NewTopic(name, 1, config=CONFIG) for name in ("ours", "theirs")]
        for done in admin.create_topics(made).values():
            done.result(LIMIT_S)
        latest = fill(node.bootstrap, "theirs")
        logs = tmp_path / "data" / "logs"
        theirs, ours = logs / "theirs-0", logs / "ours-0"
        end = time.monotonic() + LIMIT_S
        checkpoint = logs / "cleaner-offset-checkpoint"
        while not (checkpoint.exists() and "theirs 0 " in checkpoint.read_text()):
            assert time.monotonic() < end, "Kafka does not compact"
            time.sleep(0.1)
    assert read_theirs(theirs) == latest
    expected = leave_half_done(ours)
    assert list(ours.glob("*.log.swap"))
    with node:
        assert consume(node.bootstrap, "ours", OURS_END) == expected
        assert not list(ours.glob("*.swap"))


def opened(folder):
    config = LogConfig(segment_bytes=SEGMENT, compact=True, delete=False)
    return PartitionLog.open_folder(
        OsDisk(),
        str(folder),
        config,
        recovery_point=0,
        log_start_offset=0,
        clean=False,
        machine_lived=False,
        now_ms=0,
    )


def records_of(log):
    for segment in log.segments:
        file = log.disk.open_file(segment.path)
        data = file.pread(file.size(), 0)
        file.close()
        at = 0
        while at < len(data):
            header = read_header(data, at)
            if header.record_count and not header.is_control:
                yield from iter_records(data[at : at + header.size])
            at += header.size


def read_theirs(folder):
    log = opened(folder)
    found = {record.key: record.value for record in records_of(log)}
    assert log.end_offset == 20_000
    log.close()
    return found


def leave_half_done(folder):
    """Append to the empty log, begin to compact it, and end between two renames of the first swap;
    the latest values."""
    log = opened(folder)
    latest = {}
    for number in range(OURS_END):
        key, value = b"k%d" % (number % 50), b"%d " % number * 300
        batch = bytearray(build_batch([NewRecord(1_700_000_000_000 + number, key, value)]))
        log.stage(memoryview(batch), read_header(batch), 0, 0)
        log.commit()
        latest[key] = value
    log.sync_now()
    found = cleanable.measure_dirty(log, 0, log.end_offset, 0)
    job = Compactor(log.disk, cleanable.work(log, found, 0, 1 << 20, 0.9, 1 << 16), lambda _: None)
    job.read_keys()
    cleaned = job.clean(job.groups()[0])
    swap.decide(log.disk, log.path, cleaned.base, cleaned.size)
    log.close()
    return latest


def consume(bootstrap, topic, end):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found, before = {}, -1
    while before < end - 1:
        message = consumer.poll(LIMIT_S)
        assert message is not None and not message.error()
        assert message.offset() > before
        before = message.offset()
        found[message.key()] = message.value()
    consumer.close()
    return found


def fill(bootstrap, topic):
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    latest = {}
    for n in range(20_000):
        key, value = b"k%d" % (n * 37 % 700), b"%d " % n * 20
        producer.produce(topic, value, key)
        latest[key] = value
        if not n % 1000:
            producer.flush(LIMIT_S)
    producer.flush(LIMIT_S)
    return latest
