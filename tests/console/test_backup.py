"""Backups of a running appliance with groups and transactions; what is made of them when it is
gone, read by a stock client."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from appliance.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from appliance.base.os_disk import OsDisk
from console.model.asking.failure import Failure
from console.model.backup import instant, keeping, manifest
from console.model.backup.instant import LINKS, Log, Running
from console.model.backup.quiet import MARGINS_MS
from console.model.backup.store import FolderStore, opened
from penstock.local import Appliance
from tests.bucket_server import serving
from tests.console_process import typing

SIZE = 100_000
FAR_MS = 10 * max(MARGINS_MS)
GROUP = "readers"
FEW = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}


def penstock(*args, code=0):
    return typing("")(*map(str, args), code=code)


def told(*args, code=0):
    return json.loads(penstock(*args, "-o", "json", code=code).stdout)


def now_ms():
    return time.time_ns() // 1_000_000


def let_pass(ms):
    """Records are cut by the time of the wall clock: only that makes them older."""
    end = now_ms() + ms
    while now_ms() < end:
        time.sleep(0.001)


def producer(one, **settings):
    return confluent_kafka.Producer({"bootstrap.servers": one.bootstrap, **settings})


def send(client, topic, *values):
    for value in values:
        client.produce(topic, str(value).encode().ljust(SIZE if topic == "events" else 1, b"."))
    client.flush(30)


def values(one, topic):
    """Every record that a reader with read_committed gets, to the end of the partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": one.bootstrap, "group.id": "x", "enable.partition.eof": True,
         "isolation.level": "read_committed", "auto.offset.reset": "error"}
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    found = []
    while True:
        record = consumer.poll(30)
        assert record is not None
        if record.error():
            assert record.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0))
            end = consumer.position([TopicPartition(topic, 0)])[0].offset
            consumer.close()
            return found, high - end
        found.append(record.value().rstrip(b".").decode())


def committed(one):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": one.bootstrap, "group.id": GROUP})
    [found] = consumer.committed([TopicPartition("events", 0)], 30)
    consumer.close()
    return found.offset


def commit(one, offset):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": one.bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("events", 0, offset)], asynchronous=False)
    consumer.close()


class Story:
    """What was done, and the backups that were taken in between."""

    def __init__(self, folder):
        self.where = folder / "backups"
        self.middle_ms = 0
        with Appliance(folder / "data", FEW) as one:
            self.data = one.data_dir
            self._tell(one)

    def _tell(self, one):
        admin = AdminClient({"bootstrap.servers": one.bootstrap})
        topics = [
            NewTopic("events", 1, 1, config={"segment.bytes": str(1 << 20)}),
            NewTopic("out", 1, 1, config={"retention.ms": "987654321"}),
            NewTopic("empty", 2, 1),
        ]
        for future in admin.create_topics(topics).values():
            future.result(30)
        send(producer(one, **{"linger.ms": 0}), "events", *range(30))
        commit(one, 5)
        writer = producer(one, **{"transactional.id": "t", "transaction.timeout.ms": 20_000})
        writer.init_transactions(30)
        for value, ends in (("1", writer.commit_transaction), ("2", writer.abort_transaction)):
            writer.begin_transaction()
            send(writer, "out", value)
            ends(30)
        writer.begin_transaction()
        send(writer, "out", "3")
        [self.first] = told("backup", "create", self.where, self.data)
        let_pass(FAR_MS)  # a restore goes back to a time far from what was decided before and after
        self.middle_ms = now_ms()
        let_pass(1)
        writer.commit_transaction(30)
        send(producer(one), "events", *range(30, 35))
        commit(one, 7)
        for future in admin.delete_records([TopicPartition("events", 0, 3)]).values():
            future.result(30)
        self._killed()
        [self.second] = told("backup", "create", self.where, self.data)

    def _killed(self):
        """A backup whose process dies over its second piece, with nothing said to anybody."""
        words = [sys.executable, "-c", _KILLED, str(self.where), str(self.data)]
        assert subprocess.run(words, timeout=100).returncode == -signal.SIGKILL
        assert list(self.data.joinpath(LINKS).iterdir()), "it was in the middle"
        running = Running(OsDisk(), [str(self.data)])
        with pytest.raises(Failure, match=r"a backup of .* is running"):
            Running(OsDisk(), [str(self.data)])
        running.close()


_KILLED = """
import os, signal, sys
from console.model.backup.store import FolderStore
from console.root import run

def write_object(self, name, pieces, before=FolderStore.write_object):
    if FolderStore.puts:
        os.kill(os.getpid(), signal.SIGKILL)
    FolderStore.puts += 1
    before(self, name, pieces)

FolderStore.puts, FolderStore.write_object = 0, write_object
sys.argv = ["penstock", "backup", "create", *sys.argv[1:]]
run()
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    told = Story(tmp_path_factory.mktemp("backup"))
    shutil.rmtree(told.data)
    return told


def test_what_is_there_is_not_sent_again_and_a_backup_that_was_cut_off_is_none(story):
    first, second = story.first, story.second
    assert first["sent"] > 30 * SIZE and second["bytes"] > first["bytes"]
    assert second["sent"] < first["sent"] / 2
    assert first["left_out"] == second["left_out"] == []
    names = [row["name"] for row in told("backup", "list", story.where)]
    assert names == [first["name"], second["name"]]
    assert told("backup", "verify", story.where) == []


def test_the_newest_backup_is_the_appliance_as_it_was(story, tmp_path):
    penstock("restore", story.where, tmp_path / "data")
    assert "not empty" in penstock("restore", story.where, tmp_path / "data", code=2).stderr
    assert penstock("storage", "verify", tmp_path / "data").stdout == ""
    with Appliance(tmp_path / "data") as one:
        assert values(one, "events") == ([str(n) for n in range(3, 35)], 0)
        assert values(one, "out")[0] == ["1", "3"]
        assert committed(one) == 7
        admin = AdminClient({"bootstrap.servers": one.bootstrap})
        assert set(admin.list_topics(timeout=30).topics) >= {"events", "out", "empty"}
        asked = ConfigResource(ConfigResource.Type.TOPIC, "out")
        assert (
            admin.describe_configs([asked])[asked].result(30)["retention.ms"].value == "987654321"
        )
        writer = producer(one, **{"transactional.id": "t"})
        writer.init_transactions(30)
        writer.begin_transaction()
        send(writer, "out", "4")
        writer.commit_transaction(30)
        assert values(one, "out")[0] == ["1", "3", "4"]
        assert (one.data_dir / "empty-1").is_dir()
    assert penstock("storage", "verify", tmp_path / "data").stdout == ""


def test_to_a_point_in_time_later_records_are_gone_and_open_transactions_are_aborted(
    story, tmp_path
):
    to = ("--to", story.middle_ms)
    [plan] = told("restore", story.where, tmp_path / "data", *to, "--dry-run")
    assert not (tmp_path / "data").exists(), "nothing is written"
    [row] = told("restore", story.where, tmp_path / "data", *to)
    assert plan.items() <= row.items() and plan["to_ms"] <= story.middle_ms
    shown = penstock("restore", story.where, tmp_path / "y", *to, "--dry-run")
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(plan["to_ms"] / 1000))
    assert at in shown.stdout and str(plan["to_ms"]) not in shown.stdout
    assert "nothing is written" in shown.stderr
    refused = penstock("restore", story.where, tmp_path / "data", "--dry-run", code=2)
    assert "is not empty" in refused.stderr
    assert row["name"] == story.second["name"] and row["cut"] >= 5 and row["aborted"] == 1
    with Appliance(tmp_path / "data") as one:
        assert values(one, "events") == ([str(n) for n in range(3, 30)], 0)
        assert values(one, "out") == (["1"], 0)
        assert committed(one) == 5
    late = penstock("restore", story.where, tmp_path / "x", "--to", now_ms() + 60_000, code=2)
    assert "no backup is newer than that time" in late.stderr


def test_one_that_is_torn_is_restored_to_where_it_is_whole(story, tmp_path):
    where = tmp_path / "backups"
    shutil.copytree(story.where, where)
    store = FolderStore(str(where))
    whole = manifest.read(store, story.second["name"])
    torn = replace(whole, name="9", instant_ms=story.middle_ms, torn=True)
    manifest.write_manifest(store, torn)
    said = penstock("restore", where, tmp_path / "data", "--dry-run").stderr
    assert "without --to it ends at the last point where all are complete" in said
    [row] = told("restore", where, tmp_path / "data")
    assert row["name"] == "9" and row["cut"] >= 5 and row["aborted"] == 1
    with Appliance(tmp_path / "data") as one:
        assert values(one, "out") == (["1"], 0)


@pytest.mark.parametrize(("decides", "torn"), [(True, True), (False, False)])
def test_what_others_lead_is_read_when_it_was_heard_of(monkeypatch, decides, torn):
    """A table whose marks rise while somebody waits."""
    names = ("a", TRANSACTIONS_TOPIC, OFFSETS_TOPIC)
    logs = [Log(name, b"", 0, handle) for handle, name in enumerate(names)]
    marks, clock = {0: 10, 1: 20, 2: 30}, [0.0]

    class Table:
        def read_column(self, handle, column):
            return marks[handle]

    def sleep(seconds):
        assert seconds == 1.5
        for handle in (0, 1, 2) if decides else (0, 2):
            marks[handle] += 1
        clock[0] += seconds

    monkeypatch.setattr(instant.time, "sleep", sleep)
    monkeypatch.setattr(instant.time, "monotonic", lambda: clock[0])
    _, found = instant._read_marks(Table(), logs, 1.5)
    assert found is torn and clock[0] == (12 if decides else 3)
    data, decided, offsets = logs
    assert offsets.end - 30 == data.end - 10 - 1, "records are read later than offsets"
    assert decided.end == marks[1], "the newest of them, which say what was decided"


def test_damage_in_a_backup_is_told_and_is_not_restored(story, tmp_path):
    where = tmp_path / "backups"
    shutil.copytree(story.where, where)
    largest = max((where / manifest.SEGMENTS).glob("*/*"), key=lambda path: path.stat().st_size)
    with largest.open("r+b") as file:
        file.seek(500)
        file.write(b"\xff\xfe\xff")
    [row] = told("backup", "verify", where, code=4)
    assert row["digest"] == largest.name and row["problem"] == "its bytes have changed"
    assert any(name.startswith("events-0") for name in row["partitions"])
    assert "have changed" in penstock("restore", where, tmp_path / "data", code=1).stderr
    assert not (tmp_path / "data" / "meta.properties").exists()
    largest.unlink()
    assert told("backup", "verify", where, code=4)[0]["problem"] == "missing"


def test_old_backups_are_forgotten_with_what_no_other_one_needs(story, tmp_path):
    where = tmp_path / "backups"
    shutil.copytree(story.where, where)
    store = FolderStore(str(where))
    before = store.names(manifest.SEGMENTS)
    assert "needs --yes" in penstock("backup", "prune", where, "--keep", 1, code=2).stderr
    [row] = told("backup", "prune", where, "--keep", 1, "--yes")
    assert row["name"] == story.first["name"]
    assert penstock("backup", "prune", where, "--keep", 1).stderr == "no backup to delete\n"
    after = store.names(manifest.SEGMENTS)
    [left] = keeping.every(store)
    assert set(after) < set(before) and set(after) == {manifest.place(d) for d in left.digests}
    assert told("backup", "verify", where) == []


def test_a_folder_in_which_nothing_runs_is_not_backed_up(story, tmp_path):
    said = penstock("backup", "create", tmp_path / "b", tmp_path / "none", code=1)
    assert "NOT_RUNNING" in said.stderr or "no folder of an appliance" in said.stderr


@pytest.fixture
def bucket(monkeypatch):
    with serving(monkeypatch) as url:
        yield url


def test_a_bucket_keeps_backups_as_a_folder_does(story, bucket, tmp_path):
    folder, there = FolderStore(str(story.where)), opened(bucket)
    for name in (*folder.names(manifest.SEGMENTS), *folder.names(manifest.BACKUPS)):
        there.write_object(name, folder.read_object(name))
    assert there.names(manifest.SEGMENTS) == folder.names(manifest.SEGMENTS)
    assert [row["name"] for row in told("backup", "list", bucket)] == manifest.names(folder)
    assert told("backup", "verify", bucket) == []
    [row] = told("restore", bucket, tmp_path / "data")
    assert row["bytes"] == story.second["bytes"] and row["aborted"] == 0
    assert row["to_ms"] is None, "no time was given"
    [row] = told("backup", "prune", bucket, "--keep", 1, "--yes")
    assert told("backup", "verify", bucket) == []
    assert len(there.names(manifest.SEGMENTS)) < len(folder.names(manifest.SEGMENTS))
    with pytest.raises(Failure):
        b"".join(there.read_object("segments/00/nothing"))
