"""What may not be moved between Apache Kafka and us, by folders that are made of records alone."""

import os
import subprocess
import sys
from collections import namedtuple
from random import Random

import pytest

from appliance.base.os_disk import OsDisk
from appliance.metadata import checkpoint, identity
from appliance.metadata.checkpoint import SnapshotId, VoterSet
from appliance.metadata.follower import LOG_FOLDER
from appliance.metadata.identity import META_PROPERTIES, Identity
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft
from console.model.asking.failure import Failure
from console.model.storage import folder_copy, kafka_folder, log_files
from tests.old_formats import random_set

TOPIC_ID = bytes(range(16))
DIRECTORY = bytes(range(16, 32))


def feature(name, level):
    return kraft.FeatureLevelRecord(name=name, feature_level=level)


def topic(*replicas):
    part = kraft.PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=replicas, isr=replicas, leader=replicas[0],
        leader_epoch=0, partition_epoch=0, directories=(DIRECTORY,) * len(replicas),
    )  # fmt: skip
    return [kraft.TopicRecord(name="t", topic_id=TOPIC_ID), part]


def setting(name, value):
    return kraft.ConfigRecord(resource_type=2, resource_name="t", name=name, value=value)


@pytest.fixture
def folder(tmp_path):
    """A function that makes the folder of node 1 with these records."""

    def make(*records, version=30):
        image = MetadataImage()
        for record in (feature("metadata.version", version), *records):
            image.apply(0, record)
        root = tmp_path / "kafka"
        (root / LOG_FOLDER).mkdir(parents=True)
        at = SnapshotId(9, 1)
        pieces = checkpoint.write_checkpoint(image, at, VoterSet(), now_ms=1, last_log_timestamp=1)
        (root / LOG_FOLDER / at.file_name).write_bytes(b"".join(pieces))
        (root / META_PROPERTIES).write_bytes(identity.encode(Identity("c", 1, DIRECTORY)))
        return str(root)

    return make


@pytest.mark.parametrize(
    ("records", "version", "why"),
    [
        (topic(1, 2), 30, "replicas that are not on node 1"),
        ([], 31, "metadata.version 31"),
        ([], 16, "metadata.version 16"),
        ([*topic(1), setting("remote.storage.enable", "true")], 30, "remote storage"),
    ],
)
def test_refused(folder, records, version, why):
    with pytest.raises(Failure, match=why):
        kafka_folder.of_kafka(OsDisk(), folder(*records, version=version))


def test_what_is_not_the_same_is_said(folder):
    rule = kraft.AccessControlEntryRecord(
        id=TOPIC_ID, resource_type=2, resource_name="t", pattern_type=3, principal="User:a",
        host="*", operation=2, permission_type=3,
    )  # fmt: skip
    path = folder(*topic(1), feature("share.version", 1), rule, setting("later.setting", "1"))
    said = "\n".join(kafka_folder.of_kafka(OsDisk(), path).notes)
    for part in ("share.version=1", "1 ACLs", "NOT enforced", "later.setting of t",
                 "1 partitions have no folder", "was not shut down cleanly"):  # fmt: skip
        assert part in said, said


def test_a_log_that_is_not_whole_is_refused(folder):
    path = folder()
    with open(f"{path}/{LOG_FOLDER}/{9:020d}.log", "wb") as log:
        log.write(b"torn")
    with pytest.raises(Failure, match="not whole"):
        kafka_folder.of_kafka(OsDisk(), path)


def test_no_room_and_a_source_that_is_written_are_refused(folder, tmp_path, monkeypatch):
    path = folder(*topic(1))
    found = kafka_folder.of_kafka(OsDisk(), path)
    free = namedtuple("Free", "f_bavail f_frsize")(1, 4096)
    with monkeypatch.context() as patched:
        patched.setattr(folder_copy.os, "statvfs", lambda _: free)
        with pytest.raises(Failure, match="4096 bytes free"):
            kafka_folder.import_folder(OsDisk(), found, str(tmp_path / "new"), lambda *_: None, {})
    assert not (tmp_path / "new").exists()

    def written_meanwhile(*_):
        with open(f"{path}/{LOG_FOLDER}/new.log", "wb"):
            pass

    with pytest.raises(Failure, match="has changed"):
        kafka_folder.import_folder(OsDisk(), found, str(tmp_path / "new"), written_meanwhile, {})
    assert not (tmp_path / "new" / META_PROPERTIES).exists()


def test_a_copy_has_the_bytes_and_times_and_says_who_it_is_last(folder, tmp_path):
    path = folder(*topic(1))
    source = tmp_path / "kafka" / "t-0"
    source.mkdir()
    (source / f"{0:020d}.log").write_bytes(b"records" * 1000)
    with open(source / f"{0:020d}.index", "wb") as index:
        index.write(b"12345678")
        index.truncate(10 << 20)  # as Apache Kafka leaves one that it did not close
    (source / f"{0:020d}.log.deleted").touch()
    found, target = kafka_folder.of_kafka(OsDisk(), path), tmp_path / "new"
    assert found.size < 1 << 20
    kafka_folder.import_folder(OsDisk(), found, str(target), lambda *_: None, {"own": b"1"})
    for one in sorted(source.iterdir()):
        copied = target / "t-0" / one.name
        if one.suffix == ".deleted":
            assert not copied.exists()
        else:
            assert copied.read_bytes() == one.read_bytes()
            assert copied.stat().st_mtime_ns == one.stat().st_mtime_ns
    assert (target / META_PROPERTIES).read_bytes() == (
        tmp_path / "kafka" / META_PROPERTIES
    ).read_bytes()


def test_segments_of_old_formats_are_written_anew_and_stay_as_old(folder, tmp_path):
    path = folder(*topic(1))
    source = tmp_path / "kafka" / "t-0"
    source.mkdir()
    data, told = random_set(Random(1), 0, 30, 0)
    (source / f"{0:020d}.log").write_bytes(data)
    os.utime(source / f"{0:020d}.log", (1000, 1000))
    damaged = data[:-1] + bytes((data[-1] ^ 1,))
    behind = told[-1].offset + 1
    (source / f"{behind:020d}.log").write_bytes(damaged)
    found, target = kafka_folder.of_kafka(OsDisk(), path), tmp_path / "new"
    kafka_folder.import_folder(OsDisk(), found, str(target), lambda *_: None, {})
    name = target / "t-0" / f"{0:020d}.log"
    dumped = log_files.dump_file(str(name), records=True)
    assert not dumped["problem"]
    assert {one["format"] for one in dumped["batches"]} == {2}
    offsets = [one["offset"] for batch in dumped["batches"] for one in batch["records"]]
    assert offsets == [one.offset for one in told]
    assert name.stat().st_mtime == 1000
    assert (target / "t-0" / f"{behind:020d}.log").read_bytes() == damaged
    before = log_files.dump_file(str(source / f"{0:020d}.log"), records=True)
    assert {one["format"] for one in before["batches"]} == {0}
    assert [one for batch in before["batches"] for one in batch["records"]] == [
        one for batch in dumped["batches"] for one in batch["records"]
    ]
    after = log_files.dump_file(str(source / f"{behind:020d}.log"), records=False)
    assert after["problem"].startswith("at byte")


@pytest.mark.parametrize("lock", ["flock", "lockf"])
def test_a_folder_that_somebody_holds_is_left_alone(tmp_path, lock):
    """lockf is POSIX's lock, which Java takes."""
    (tmp_path / ".lock").touch()
    text = f"import fcntl; f = open('.lock', 'r+'); fcntl.{lock}(f, fcntl.LOCK_EX)"
    text += "; print(1, flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", text], cwd=tmp_path, **pipes) as holder:
        holder.stdout.readline()
        with pytest.raises(Failure, match="in use"), folder_copy.stopped(str(tmp_path)):
            pass
        holder.communicate(b"\n")
    with folder_copy.stopped(str(tmp_path)):
        pass
