"""The metadata log itself: commits, epochs, snapshots, old segments, folders of Apache Kafka."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.config.broker import BrokerConfig
from appliance.control.folder.format import open_or_format
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.metadata_log import open_log
from appliance.control.quorum.metadata_quorum import VotingSetup, open_quorum
from appliance.control.quorum.snapshots import SnapshotLimits
from appliance.controller.registration import bootstrap_records
from appliance.metadata import files
from appliance.metadata.follower import Follower
from appliance.quorum.messages import QuorumState
from appliance.ring.partition_table import PartitionTable
from appliance.wire import kraft_records as kraft
from benchmarks import kafka

KAFKA = Path(__file__).parent / "written_by_kafka"
LIMITS = SnapshotLimits(snapshot_bytes=4096, snapshot_ms=0, segment_bytes=2048)


def follower(path) -> Follower:
    table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(64))), 64)
    return Follower(OsDisk(), str(path), table)


def opened(path, now_ms=1000, *, clean=False):
    config = BrokerConfig.of({"node.id": "1"})
    me, _ = open_or_format(OsDisk(), str(path), config, os.urandom, now_ms)
    log = open_log(OsDisk(), str(path), LIMITS.segment_bytes, now_ms, clean=clean)
    quorum = open_quorum(
        OsDisk(), 1, log, follower(path), LIMITS, VotingSetup(directory=me.directory_id)
    )
    quorum.elected(now_ms)
    quorum.activate(now_ms)
    if not quorum.image.metadata_version:
        quorum.append(bootstrap_records(), now_ms)
    quorum.sync()
    return quorum


def setting(number: int) -> kraft.ConfigRecord:
    return kraft.ConfigRecord(
        resource_type=4, resource_name="", name="log.retention.ms", value=str(number)
    )


def test_each_start_leads_a_new_epoch(tmp_path):
    for epoch in (1, 2, 3):
        quorum = opened(tmp_path)
        assert quorum.leadership.epoch == quorum.image.epoch == epoch
        state = json.loads((tmp_path / "__cluster_metadata-0" / "quorum-state").read_text())
        assert (state["leaderEpoch"], state["leaderId"], state["data_version"]) == (epoch, 1, 1)
        quorum.log.close()


def test_an_epoch_in_quorum_state_is_never_led_again(tmp_path):
    opened(tmp_path).log.close()
    folder = str(tmp_path / "__cluster_metadata-0")
    quorum_state.write_state(OsDisk(), folder, QuorumState(9, leader=1), dynamic=False, voters=(1,))
    assert opened(tmp_path).leadership.epoch == 10


def test_a_damaged_quorum_state_is_refused(tmp_path):
    opened(tmp_path).log.close()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text("{")
    with pytest.raises(ConfigError, match="quorum-state is damaged"):
        opened(tmp_path)


def test_what_is_appended_is_replayed_at_once_and_committed_by_a_sync(tmp_path):
    quorum = opened(tmp_path)
    before = quorum.committed
    quorum.append([setting(1)], 1000)
    assert quorum.log.unsynced and quorum.committed == before
    assert quorum.image.config(4, "") == {"log.retention.ms": "1"}
    quorum.sync()
    assert quorum.committed == before + 1 == quorum.log.end_offset
    other = follower(tmp_path)
    other.catch_up(quorum.committed)
    assert other.image == quorum.image


def test_snapshots_replace_old_segments(tmp_path):
    quorum = opened(tmp_path)
    folder = tmp_path / "__cluster_metadata-0"
    slow = follower(tmp_path)
    slow.catch_up(quorum.committed)
    taken = 0
    for number in range(400):
        quorum.append([setting(number)], 1000 + number)
        quorum.sync()
        if quorum.snapshot_due(1000 + number):
            quorum.snapshot(1000 + number)
            taken += 1
    assert taken > 5
    kept = files.snapshots(OsDisk(), str(folder))
    assert len(kept) == 2
    assert files.segments(OsDisk(), str(folder))[0] > 0
    assert sum(path.stat().st_size for path in folder.glob("*.log")) < 4 * 4096
    assert not list(folder.glob("*.deleted"))
    fast = follower(tmp_path)
    for one in (slow, fast):
        one.catch_up(quorum.committed)
        assert one.image == quorum.image
    quorum.log.close()
    again = opened(tmp_path)
    assert again.image.config(4, "") == {"log.retention.ms": "399"}
    assert again.committed == quorum.committed + 1


def test_a_snapshot_that_fails_is_tried_again_later(tmp_path, monkeypatch):
    quorum = opened(tmp_path)
    while not quorum.snapshot_due(1000):
        quorum.append([setting(1)], 1000)
        quorum.sync()
    monkeypatch.setattr(OsDisk, "create", refuse)
    with pytest.raises(StorageFailed):
        quorum.snapshot(1000)
    monkeypatch.undo()
    assert not quorum.snapshot_due(1000) and quorum.snapshot_due(61_000)
    quorum.append([setting(2)], 61_000)
    quorum.sync()
    quorum.snapshot(61_000)
    assert not quorum.snapshot_due(61_000)


def refuse(self, path):
    raise StorageFailed(path, 28, "No space left on device")


def test_the_epoch_before_the_first_record_is_known_after_a_start_too(tmp_path):
    """Who asks whether a log of an older epoch is a prefix goes by it (`quorum/peer.py`)."""
    quorum = opened(tmp_path)
    assert quorum.log.start_epoch == 0
    while not files.segments(OsDisk(), quorum.log.folder)[0]:  # whole segments go
        for number in range(40):
            quorum.append([setting(number)], 1000)
        quorum.sync()
        quorum.snapshot(1000)
    epoch = quorum.leadership.epoch
    assert quorum.log.start_epoch == epoch > 0
    quorum.log.close()
    assert opened(tmp_path).log.start_epoch == epoch


def test_the_newest_snapshot_may_be_torn(tmp_path):
    quorum = opened(tmp_path)
    for number in range(3):
        quorum.append([setting(number)], 1000)
        quorum.sync()
        quorum.snapshot(1000)
    quorum.log.close()
    folder = tmp_path / "__cluster_metadata-0"
    newest = sorted(folder.glob("*.checkpoint"))[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    assert opened(tmp_path).image.config(4, "") == {"log.retention.ms": "2"}


def test_a_torn_tail_of_the_log_is_cut_off(tmp_path):
    quorum = opened(tmp_path)
    quorum.append([setting(1)], 1000)
    quorum.sync()
    quorum.append([setting(2)], 1000)
    quorum.sync()
    quorum.log.close()
    path = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-5])
    assert opened(tmp_path).image.config(4, "") == {"log.retention.ms": "1"}


@pytest.mark.parametrize("name", ["static", "standalone"])
def test_a_folder_of_apache_kafka_is_taken_over(tmp_path, name):
    folder = tmp_path / "data"
    shutil.copytree(KAFKA / name, folder)
    quorum = opened(folder)
    assert quorum.leadership.epoch == 2
    assert list(quorum.image.topics_by_name) == ["hello"]
    assert quorum.image.features["group.version"] == 1
    state = json.loads((folder / "__cluster_metadata-0" / "quorum-state").read_text())
    assert state["data_version"] == (name == "standalone")
    quorum.append([setting(1)], 1000)
    quorum.sync()
    quorum.snapshot(1000)
    quorum.log.close()
    again = opened(folder)
    assert again.image.config(4, "")["log.retention.ms"] == "1"
    assert again.kraft_version == (name == "standalone")


def test_a_folder_that_kafka_formatted_and_never_started(tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(KAFKA / "standalone", folder)
    for path in (folder / "__cluster_metadata-0").iterdir():
        if path.suffix != ".checkpoint":
            path.unlink()
    quorum = opened(folder)
    assert quorum.leadership.epoch == 1 and quorum.image.metadata_version == 30
    assert list(quorum.replica.voters) == [1] and quorum.kraft_version == 1


def test_partitions_without_metadata_are_not_started_over(tmp_path):
    (tmp_path / "flights-0").mkdir()
    with pytest.raises(ConfigError, match=r"holds flights-0 but no meta\.properties"):
        opened(tmp_path)


# Kafka's own tools --------------------------------------------------------------------------------

needs_kafka = pytest.mark.skipif(bool(kafka.unavailable()), reason=kafka.unavailable() or "")


def dumped(*paths: Path) -> list[str]:
    """What Apache Kafka's own tool tells of each file, by one run of it."""
    command = [
        "java",
        "-Xmx256m",
        "-cp",
        f"{kafka.libs()}/*",
        "org.apache.kafka.tools.DumpLogSegments",
    ]
    command += ["--cluster-metadata-decoder", "--files", ",".join(map(str, paths))]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "isvalid: false" not in found.stdout and "Could not" not in found.stdout
    before, *texts = found.stdout.split("Dumping ")
    assert len(texts) == len(paths) and not before.strip()
    assert all(text.startswith(str(path)) for text, path in zip(texts, paths, strict=True))
    return texts


@needs_kafka
def test_kafka_reads_our_log_and_our_snapshots(tmp_path):
    quorum = opened(tmp_path)
    quorum.append(
        [
            kraft.TopicRecord(name="flights", topic_id=b"0123456789abcdef"),
            kraft.PartitionRecord(
                partition_id=0,
                topic_id=b"0123456789abcdef",
                replicas=(1,),
                isr=(1,),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(b"d" * 16,),
            ),
            setting(5),
        ],
        1000,
    )
    quorum.sync()
    quorum.snapshot(1000)
    quorum.log.close()
    folder = tmp_path / "__cluster_metadata-0"
    formatted, snapshot = sorted(folder.glob("*.checkpoint"))
    log = folder / f"{0:020d}.log"
    of_formatted, of_log, of_snapshot, of_bootstrap = dumped(
        formatted, log, snapshot, tmp_path / "bootstrap.checkpoint"
    )
    assert "KRaftVoters" in of_formatted
    for text, first in ((of_log, "LeaderChange"), (of_snapshot, "SnapshotHeader")):
        assert "KRaftVersion" in text and "KRaftVoters" in text
        for expected in (first, "FEATURE_LEVEL_RECORD", "TOPIC_RECORD", "PARTITION_RECORD"):
            assert expected in text
        assert '"name":"flights"' in text and "CONFIG_RECORD" in text
    assert "SnapshotFooter" in of_snapshot
    assert "FEATURE_LEVEL_RECORD" in of_bootstrap


def damage(path, *, from_end):
    """Flip a bit so many bytes before the end of the only segment; its bytes before that."""
    (segment,) = (path / "__cluster_metadata-0").glob("*.log")
    good = segment.read_bytes()
    bad = bytearray(good)
    bad[-from_end] ^= 1
    segment.write_bytes(bad)
    return segment, good


def test_a_torn_tail_is_cut_off(tmp_path):
    quorum = opened(tmp_path)
    quorum.append([setting(1)], 1000)
    quorum.sync()
    before = quorum.log.end_offset
    quorum.append([setting(2)], 1000)
    quorum.log.close()
    damage(tmp_path, from_end=3)
    again = opened(tmp_path)
    assert again.image.config(4, "") == {"log.retention.ms": "1"}
    assert again.committed == before + 1  # the record of the new leader


def test_after_an_orderly_end_nothing_is_torn(tmp_path):
    quorum = opened(tmp_path)
    quorum.append([setting(1)], 1000)
    quorum.sync()
    quorum.log.close()
    segment, _ = damage(tmp_path, from_end=3)
    damaged = segment.read_bytes()
    with pytest.raises(StorageFailed, match=r"damaged at byte \d+: the CRC32C"):
        opened(tmp_path, clean=True)
    assert segment.read_bytes() == damaged, "nothing is changed: a copy may still be made"


def test_what_an_earlier_leader_wrote_was_synced(tmp_path):
    quorum = opened(tmp_path)
    quorum.append([setting(1)], 1000)
    quorum.sync()
    (segment,) = (tmp_path / "__cluster_metadata-0").glob("*.log")
    end = segment.stat().st_size
    quorum.log.close()
    again = opened(tmp_path)
    damage(tmp_path, from_end=segment.stat().st_size - end + 3)
    again.log.close()
    with pytest.raises(StorageFailed, match="restore the folder from a copy"):
        opened(tmp_path)
