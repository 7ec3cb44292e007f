"""`penstock topic archive` and `restore`: the topic is in another appliance as it was, and what is
cut off goes on."""

import json
import shutil

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from appliance.base.os_disk import OsDisk
from console.model.asking.failure import Failure
from console.model.backup.archiving import (
    TopicRestore,
    archive_topic,
    chosen_archive,
    opened_archive,
)
from console.model.backup.instant import Running
from console.model.backup.store import FolderStore
from penstock.local import Appliance
from tests.bucket_server import serving
from tests.console_process import typing

TOPIC = "orders"
NOW_MS = 1_790_000_000_000
RECORDS = 300


def penstock(*args, code=0):
    return typing("")(*map(str, args), code=code)


def told(*args):
    (row,) = json.loads(penstock(*args, "-o", "json").stdout)
    return row


def produce(one):
    producer = confluent_kafka.Producer({"bootstrap.servers": one.bootstrap, "linger.ms": 0})
    for n in range(RECORDS):
        producer.produce(
            TOPIC, bytes(10_000), f"k{n}".encode(), partition=n % 2, timestamp=NOW_MS + n,
            headers=[("n", str(n).encode()), ("none", None)],
        )  # fmt: skip
        if n % 20 == 0:
            producer.flush(30)
    producer.flush(30)


def records(one):
    """Everything that a reader sees, leader epochs too."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": one.bootstrap, "group.id": "x", "enable.partition.eof": True}
    )
    places = [TopicPartition(TOPIC, n, confluent_kafka.OFFSET_BEGINNING) for n in (0, 1)]
    consumer.assign(places)
    found, ends = [], 0
    while ends < len(places):
        one = consumer.poll(30)
        assert one is not None
        if one.error():
            ends += 1
            continue
        found.append(
            (one.partition(), one.offset(), one.timestamp(), one.key(), one.value(),
             tuple(one.headers()), one.leader_epoch())
        )  # fmt: skip
    consumer.close()
    return sorted(found)


def described(one):
    (found,) = json.loads(
        typing(one.bootstrap)("topic", "describe", TOPIC, "-a", "-o", "json").stdout
    )
    keys = ("id", "config", "settings", "records", "partition_count")
    return {key: found.get(key) for key in keys}


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A data folder with a topic in several segments, and what its readers saw. It runs."""
    folder = tmp_path_factory.mktemp("source") / "data"
    with Appliance(folder) as one:
        run = typing(one.bootstrap)
        settings = ("-c", "segment.bytes=1048576", "-c", "retention.ms=-1")
        run("topic", "create", TOPIC, "-p", "2", *settings)
        produce(one)
        run("topic", "trim", TOPIC, "-p", "0", "-o", "10", "--yes")
        yield folder, one, records(one), described(one)


def restored(where, place, story, topic=TOPIC):
    """A fresh appliance that has it."""
    with Appliance(place):
        pass
    penstock("topic", "restore", topic, where, place)
    with Appliance(place) as one:
        typing(one.bootstrap)("topic", "undelete", topic)
        assert records(one) == story[2]
        assert described(one) == story[3]


def test_a_topic_is_in_another_appliance_as_it_was(story, tmp_path):
    first = told("topic", "archive", TOPIC, tmp_path / "a", story[0])
    assert first["partitions"] == 2 and first["sent"] >= first["bytes"] > RECORDS * 9000
    again = told("topic", "archive", TOPIC, tmp_path / "a", story[0])
    assert again["sent"] < first["sent"] / 10, "what is there is not sent again"
    restored(f"file://{tmp_path}/a", tmp_path / "b", story)


def test_the_same_by_a_bucket(story, tmp_path, monkeypatch):
    with serving(monkeypatch) as where:
        told("topic", "archive", TOPIC, where, story[0])
        restored(where, tmp_path / "b", story)


class CutOff(FolderStore):
    """A store whose process is killed after so many objects."""

    def __init__(self, path, objects):
        super().__init__(path)
        self.left = objects

    def _count(self):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def write_object(self, name, pieces):
        self._count()
        super().write_object(name, pieces)

    def read_object(self, name):
        self._count()
        return super().read_object(name)


def test_what_was_cut_off_goes_on_and_is_no_topic_before(story, tmp_path):
    disk, folders, place = OsDisk(), [str(story[0])], str(tmp_path / "a" / TOPIC)

    def archive(store):
        return archive_topic(disk, Running(disk, folders), folders, store, TOPIC, lambda *_: None)

    with pytest.raises(KeyboardInterrupt):
        archive(CutOff(place, 5))
    whole = opened_archive(f"{tmp_path}/a", TOPIC)
    with pytest.raises(Failure, match="no archive"):
        chosen_archive(whole, TOPIC, "")
    made = archive(whole)
    assert 0 < made.sent < made.manifest.bytes

    target = tmp_path / "b"
    with Appliance(target):
        pass
    chosen = chosen_archive(whole, TOPIC, "")

    def restore(store):
        return TopicRestore(disk, store, chosen, str(target), NOW_MS, lambda *_: None)

    with pytest.raises(KeyboardInterrupt):
        restore(CutOff(place, 3)).restore_topic()
    assert not (target / "penstock-topic-trash.json").exists(), "its entry comes last"
    done = restore(whole).restore_topic()
    assert 0 < done.read < done.bytes and done.records == RECORDS - 10


def test_what_cannot_be_is_refused_by_name(story, tmp_path):
    data = story[0]
    for topic, name in (("nobody", "there is no topic nobody"), ("__consumer_offsets", "itself")):
        done = penstock(
            "topic", "archive", topic, tmp_path / "a", data, code=2 if "_" in topic else 1
        )
        assert name in done.stderr
    assert "inside" in penstock("topic", "archive", TOPIC, data / "a", data, code=2).stderr
    told("topic", "archive", TOPIC, tmp_path / "a", data)
    done = penstock("topic", "restore", TOPIC, tmp_path / "a", data, code=1)
    assert "stop" in done.stderr
    target = tmp_path / "b"
    with Appliance(target):
        pass
    dry = told("topic", "restore", TOPIC, tmp_path / "a", target, "--dry-run")
    assert dry["status"] == "would be restored" and not list(target.glob(f"{TOPIC}*"))
    told("topic", "restore", TOPIC, tmp_path / "a", target)
    done = penstock("topic", "restore", TOPIC, tmp_path / "a", target, code=1)
    assert "among the deleted topics" in done.stderr
    digest = max((tmp_path / "a" / TOPIC).glob("segments/*/*"), key=lambda one: one.stat().st_size)
    digest.write_bytes(digest.read_bytes()[:-1] + b"?")
    shutil.rmtree(target)
    with Appliance(target):
        pass
    done = penstock("topic", "restore", TOPIC, tmp_path / "a", target, code=1)
    assert "changed" in done.stderr
