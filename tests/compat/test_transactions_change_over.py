"""Readers with READ_COMMITTED get from us what they got from Apache Kafka, of a folder that Kafka
wrote, and groups the offsets that they had; and Kafka gets of groups what it would from us."""

import shutil
import time
from contextlib import closing

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.coordinators.transactions.settings import TransactionSettings
from appliance.coordinators.transactions.shard import TransactionShard
from appliance.coordinators.transactions.states import NAMES
from appliance.logstore.log import PartitionLog
from appliance.logstore.producer_snapshot import decode_snapshot
from appliance.metadata.image import MetadataImage
from appliance.wire.batch import HEADER_SIZE, iter_records, read_header
from benchmarks import kafka
from tests.broker_process import Broker
from tests.compat.transactional_requests import Machine, ThroughTheWire, steps
from tests.differential.link import Link

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]
LIMIT_S = 60
UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
ROUNDS = 20


def test_aborted_and_open_transactions_are_not_seen(tmp_path):
    node = kafka.Kafka(tmp_path / "kafka", heap="512m")
    node.settings |= {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    with node:
        answers_are_kafka_s(node)
        write(node.bootstrap)
        theirs = read_all(node.bootstrap)
        offsets = committed(node.bootstrap)
    assert theirs["crossed", "read_uncommitted"] != theirs["crossed", "read_committed"]
    assert theirs["open", "read_committed"] == ([0], 2)
    shutil.copytree(tmp_path / "kafka" / "logs", tmp_path / "ours")
    with Broker(tmp_path / "ours") as broker:
        assert read_all(broker.bootstrap) == theirs
        assert committed(broker.bootstrap) == offsets == [5, 6, -1001]
        left = write_more_offsets(broker.bootstrap)
        ours = [fetched(broker.port, stable) for stable in (False, True)]
    assert ours == [[11, 6, -1], [11, 6, UNSTABLE]]
    del left

    found = transactions(tmp_path / "kafka" / "logs")
    assert {name: found[name] for name in "012"} == {
        "0": ("CompleteCommit", frozenset()),
        "1": ("CompleteCommit", frozenset()),
        "2": ("Ongoing", frozenset({("open", 0)})),
    }
    for name in ("crossed-0", "open-0"):
        rebuilt(tmp_path / "kafka" / "logs" / name)

    shutil.rmtree(tmp_path / "kafka" / "logs")
    shutil.move(tmp_path / "ours", tmp_path / "kafka" / "logs")
    with node:
        assert [fetched(node.port, stable) for stable in (False, True)] == ours


def answers_are_kafka_s(node):
    """Our coordinator, which nobody drives yet, answers as Kafka's does."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for made in admin.create_topics([NewTopic("t", 4)]).values():
        made.result(LIMIT_S)
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "0"})
    producer.init_transactions(LIMIT_S)  # now there is a coordinator
    with closing(Link(("127.0.0.1", node.port))) as link:
        theirs = steps(ThroughTheWire(link))
    assert theirs == steps(Machine())


def transactions(folder):
    """What our coordinator knows when it loads Kafka's log: state and partitions by id."""
    shard = TransactionShard(0, 0, TransactionSettings(), MetadataImage(), lambda: None)
    for path in folder.glob("__transaction_state-*/*.log"):
        data, at = path.read_bytes(), 0
        while at + HEADER_SIZE <= len(data) and (size := read_header(data, at).size) > HEADER_SIZE:
            for record in iter_records(data[at : at + size]):
                shard.replay(record.key, record.value, record.offset)
            at += size
    found = {name: known.transaction for name, known in shard.state.known.items()}
    return {name: (NAMES[one.state], one.partitions) for name, one in found.items()}


def rebuilt(folder):
    """What we make of the batches alone is what Kafka wrote beside them."""
    indexes = {path.name: path.read_bytes() for path in folder.glob("*.txnindex")}
    indexes = {name: data for name, data in indexes.items() if data}
    snapshot = decode_snapshot(max(folder.glob("*.snapshot")).read_bytes(), 0)
    for path in (*folder.glob("*.txnindex"), *folder.glob("*.snapshot")):
        path.unlink()
    log = PartitionLog.open_folder(
        OsDisk(),
        str(folder),
        LogConfig(),
        recovery_point=0,
        log_start_offset=0,
        clean=False,
        machine_lived=False,
        now_ms=0,
    )
    assert {path.name: path.read_bytes() for path in folder.glob("*.txnindex")} == indexes
    assert log.producers.open == snapshot.open
    for producer_id, known in snapshot.producers.items():
        ours = log.producers.producers[producer_id]
        assert (ours.epoch, ours.coordinator_epoch) == (known.epoch, known.coordinator_epoch)
        assert [one[:3] for one in list(ours.batches)[-1:]] == [one[:3] for one in known.batches]
    log.close()


def read_all(bootstrap):
    levels = ("read_committed", "read_uncommitted")
    topics = ("crossed", "open")
    return {(topic, level): read(bootstrap, topic, level) for topic in topics for level in levels}


def write(bootstrap):
    """Two producers whose transactions cross, over several segments; every third is aborted. One
    whose second transaction does not end."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic("crossed", 1, config={"segment.bytes": str(1 << 20)})
    for made in admin.create_topics([topic, NewTopic("open", 1)]).values():
        made.result(LIMIT_S)
    producers = [
        Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": str(number),
                "transaction.timeout.ms": 900_000,
            }
        )
        for number in range(3)
    ]
    for producer in producers:
        producer.init_transactions(LIMIT_S)
    write_offsets(bootstrap, producers[0])
    left = producers.pop()
    for turn in range(2):
        left.begin_transaction()
        left.produce("open", b"v")
        left.flush(LIMIT_S)
        if not turn:
            left.commit_transaction(LIMIT_S)
    for turn in range(ROUNDS):
        for producer in producers:
            producer.begin_transaction()
            for number in range(50):
                producer.produce("crossed", b"%d " % number * 400)
        for number, producer in enumerate(producers):
            producer.flush(LIMIT_S)
            end = producer.commit_transaction if (turn + number) % 3 else producer.abort_transaction
            end(LIMIT_S)


def write_offsets(bootstrap, producer):
    """Of three groups: one whose second transaction is aborted, one that commits plainly after
    its transaction, one that has nothing but an aborted transaction."""
    for group, offset, end in (
        ("first", 5, producer.commit_transaction),
        ("first", 9, producer.abort_transaction),
        ("second", 9, producer.commit_transaction),
        ("third", 9, producer.abort_transaction),
    ):
        with_group = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        producer.begin_transaction()
        place = [TopicPartition("crossed", 0, offset)]
        producer.send_offsets_to_transaction(place, with_group.consumer_group_metadata(), LIMIT_S)
        end(LIMIT_S)
        if group == "second":
            with_group.commit(offsets=[TopicPartition("crossed", 0, 6)], asynchronous=False)
        with_group.close()


def write_more_offsets(bootstrap):
    """The same groups: of the second one the transaction is aborted, of the third one it does not
    end. Its producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "more"})
    producer.init_transactions(LIMIT_S)
    for group, end in (
        ("first", producer.commit_transaction),
        ("second", producer.abort_transaction),
        ("third", None),
    ):
        with_group = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        producer.begin_transaction()
        place = [TopicPartition("crossed", 0, 11)]
        producer.send_offsets_to_transaction(place, with_group.consumer_group_metadata(), LIMIT_S)
        if end:
            end(LIMIT_S)
        with_group.close()
    return producer


def fetched(port, stable):
    """What each group has committed, or the name of an error."""
    topics = [{"name": "crossed", "partition_indexes": [0]}]
    groups = [
        {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
        for group in ("first", "second", "third")
    ]
    until = time.monotonic() + LIMIT_S
    with closing(Link(("127.0.0.1", port))) as link:
        while True:
            answer = link.ask(9, 9, {"groups": groups, "require_stable": stable})
            if all(group["error_code"].upper() == "NONE" for group in answer["groups"]):
                break
            assert time.monotonic() < until, answer
            time.sleep(0.05)
    by_group = {group["group_id"]: group["topics"][0]["partitions"] for group in answer["groups"]}
    rows = [by_group[group][0] for group in ("first", "second", "third")]
    codes = [(row["error_code"].upper(), row["committed_offset"]) for row in rows]
    return [offset if code == "NONE" else code for code, offset in codes]


def committed(bootstrap):
    found = []
    for group in ("first", "second", "third"):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        found += consumer.committed([TopicPartition("crossed", 0)], LIMIT_S)
        consumer.close()
    return [one.offset for one in found]


def read(bootstrap, topic, level):
    """Offsets of all records that a consumer of this isolation level gets, and where it ended."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": level,
            "isolation.level": level,
            "enable.partition.eof": True,
            "fetch.message.max.bytes": 100_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    offsets = []
    while True:
        message = consumer.poll(LIMIT_S)
        assert message is not None
        if message.error():
            break
        offsets.append(message.offset())
    consumer.close()
    return offsets, message.offset()
