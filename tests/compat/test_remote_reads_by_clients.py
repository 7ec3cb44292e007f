"""Stock clients read a tiered topic from its first record to its last and notice nothing: not where
the store begins, not aborted transactions, not the death of a process.

The store is a folder, and a bucket of a server that answers as S3 does. The cache of what was
fetched is smaller than the topic.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import kafka, procstat
from tests import java_tools
from tests.broker_process import KAFKA, Broker
from tests.bucket_server import serving
from tests.transactions import reading

pytestmark = [
    pytest.mark.skipif(KAFKA, reason="its store is a class of its own"),
    pytest.mark.timeout(300),
]
TOPIC = "measured"
BATCH = 40
BATCHES = 60
VALUE = 4_000
LIMIT_S = 120


def value_of(number):
    """As compressible as measurements are not."""
    return b"%08d" % number + os.urandom(VALUE - 8)


@pytest.fixture
def broker(request, tmp_path, monkeypatch):
    settings = {
        "remote.log.storage.system.enable": "true",
        "penstock.remote.storage.url": f"file://{tmp_path}/store",
        "remote.log.manager.task.interval.ms": "50",
        "log.retention.check.interval.ms": "50",
        "log.segment.delete.delay.ms": "0",
        "remote.log.index.file.cache.total.size.bytes": str(6 << 20),
    }
    with contextlib.ExitStack() as stack:
        if getattr(request, "param", "folder") == "bucket":
            settings["penstock.remote.storage.url"] = stack.enter_context(serving(monkeypatch))
        yield stack.enter_context(Broker(tmp_path / "data", settings))


def filled(broker):
    """Write transactions, every fifth of them aborted; (offset, value) of what a reader sees with
    READ_COMMITTED, and the number of all records. At return most of it is in the store alone."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {
        "remote.storage.enable": "true", "segment.bytes": str(1 << 20),
        "local.retention.bytes": "1", "retention.ms": "-1",
    }  # fmt: skip
    [made] = admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values()
    made.result(60)
    producer = ck.Producer({
        "bootstrap.servers": broker.bootstrap, "transactional.id": "one", "linger.ms": 5,
        "batch.size": 30_000,
    })  # fmt: skip
    producer.init_transactions(60)
    committed, offset = [], 0
    for number in range(BATCHES):
        producer.begin_transaction()
        values = [value_of(number * BATCH + each) for each in range(BATCH)]
        for value in values:
            producer.produce(TOPIC, value)
        producer.flush(60)
        if number % 5 == 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
            committed += [(0, offset + each, value) for each, value in enumerate(values)]
        offset += BATCH + 1
    wait_until_tiered(broker, offset)
    return committed, offset


def wait_until_tiered(broker, end):
    """Until the first segment on this host begins near the end."""
    [folder] = broker.files.glob(f"{TOPIC}-0")
    until = time.monotonic() + LIMIT_S
    while min(int(one.stem) for one in folder.glob("*.log")) < end * 2 // 3:
        assert time.monotonic() < until, sorted(one.name for one in folder.iterdir())
        time.sleep(0.05)


def processes(broker, name):
    """Processes of the appliance whose names begin so."""
    found = []
    for pid in procstat.tree(broker.process.pid):
        try:
            if Path(f"/proc/{pid}/comm").read_text().startswith(name):
                found.append(pid)
        except OSError:
            continue
    return found


def read_slowly(broker, committed, *, disturb=None):
    """Everything, by a consumer with READ_COMMITTED; `disturb` is called now and then."""
    consumer = ck.Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": "slow", "auto.offset.reset": "error",
        "isolation.level": "read_committed", "fetch.message.max.bytes": 100_000,
        "queued.max.messages.kbytes": 200, "enable.auto.commit": False, "log_level": 0,
    })  # fmt: skip
    consumer.assign([ck.TopicPartition(TOPIC, 0, 0)])
    found, until = [], time.monotonic() + LIMIT_S
    try:
        while len(found) < len(committed):
            assert time.monotonic() < until, f"{len(found)} of {len(committed)} records came"
            got = [one for one in consumer.consume(50, 1) if one.error() is None]
            found += [(0, one.offset(), one.value()) for one in got]
            if disturb is not None:
                disturb(len(found))
    finally:
        consumer.close()
    return found


def bytes_in(folder):
    found = 0
    for one in folder.rglob("*.log"):
        with contextlib.suppress(FileNotFoundError):  # it may go just now
            found += one.stat().st_size
    return found


@pytest.mark.parametrize("broker", ["folder", "bucket"], indirect=True)
def test_every_client_reads_the_whole_topic(broker):
    committed, _ = filled(broker)
    for read in reading.READERS:
        assert read(broker.bootstrap, TOPIC, 1) == committed, read.__name__
    cache = next(broker.files.glob("penstock.remote-cache"))
    until = time.monotonic() + LIMIT_S
    while (held := bytes_in(cache)) > 6 << 20:
        assert time.monotonic() < until, f"{held} bytes are in a cache of 6 MiB"
        time.sleep(0.05)
    assert held


def test_kafka_s_own_consumer_and_tools_see_one_log(broker):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    _, end = filled(broker)
    said = java_tools.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--from-beginning"),
        *("--max-messages", str(BATCH * BATCHES * 4 // 5)),
        *("--command-property", "isolation.level=read_committed"),
        *("--formatter-property", "print.value=false", "--formatter-property", "print.offset=true"),
    )
    offsets = [
        int(line.split(":")[1]) for line in said.stdout.split() if line.startswith("Offset:")
    ]
    assert len(offsets) == BATCH * BATCHES * 4 // 5 and offsets == sorted(offsets), said.stderr
    told = {}
    for time_ in ("-1", "-2", "-4", "-5"):
        words = ("--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--time", time_)
        said = java_tools.tool("org.apache.kafka.tools.GetOffsetShell", *words)
        told[time_] = int(said.stdout.strip().rpartition(":")[2])
    assert told["-1"] == end and told["-2"] == 0
    assert end * 2 // 3 <= told["-4"] <= told["-5"] + 1 <= end


def test_a_killed_process_costs_a_reader_nothing_but_time(broker):
    committed, _ = filled(broker)
    killed = []

    def kill_in_turn(count):
        wanted = len(killed) + 1
        if wanted <= 4 and count >= wanted * len(committed) // 6:
            name = "penstock-remote" if wanted % 2 else "penstock-io"
            for pid in processes(broker, name):
                os.kill(pid, signal.SIGKILL)
                killed.append(name)
                break
            else:
                killed.append("")

    found = read_slowly(broker, committed, disturb=kill_in_turn)
    assert found == committed
    assert set(killed) >= {"penstock-remote", "penstock-io"}, killed


def test_times_find_their_records_in_the_store(broker):
    filled(broker)
    consumer = ck.Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": "times", "log_level": 0,
        "isolation.level": "read_uncommitted",
    })  # fmt: skip
    consumer.assign([ck.TopicPartition(TOPIC, 0, 0)])
    times, until = {}, time.monotonic() + LIMIT_S
    while max(times, default=0) < BATCH * BATCHES // 2:
        assert time.monotonic() < until, f"{len(times)} records came"
        for message in consumer.consume(200, 1):
            if message.error() is None:
                times[message.offset()] = message.timestamp()[1]
    for offset in sorted(times)[::200]:
        [found] = consumer.offsets_for_times([ck.TopicPartition(TOPIC, 0, times[offset])], 60)
        assert found.offset <= offset
        older = [time for at, time in times.items() if at < found.offset]
        assert max(older, default=-1) < times[offset], "a record before it is not older"
    consumer.close()
