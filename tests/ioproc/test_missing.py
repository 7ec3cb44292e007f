"""What a partition has lost while nothing ran is said at the start, once, with its offsets."""

import errno
import shutil

import pytest
from core_world import NOW_MS, batch
from test_home import Cluster, produce, synced

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.ioproc.durability import checkpoints
from appliance.logstore import offset_gaps
from appliance.metadata.image import TOPIC


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    for life in cluster.lives:
        life.end()


def end_in_order(life):
    for _ in life.world.core.partitions:  # one sync at a time
        synced(life)
    for partition in life.world.core.partitions.values():
        partition.log.close()
    life.keeping.close()


def with_segments(cluster, topics=("t",)):
    """Some topics with a record in each of four segments, after an orderly end."""
    for name in topics:
        cluster.topic(name)
        cluster.image.configs[TOPIC, name] = {"segment.bytes": "1048576"}
    life = cluster.live()
    for handle in range(len(topics)):
        for _ in range(4):
            life.world.append(handle, batch(b"v" * 600_000), acks=1)
            life.world.turn()
    end_in_order(life)


def remove_segment(cluster, folder, base):
    for file in (cluster.folder / folder).glob(f"{base:020d}.*"):
        file.unlink()


def test_a_segment_that_is_gone_from_the_middle_is_one_line_and_the_rest_is_served(cluster):
    with_segments(cluster, ("t", "whole"))
    remove_segment(cluster, "t-0", 1)
    second = cluster.live(clean=True)
    (line,) = second.said().splitlines()
    assert "offsets-missing partition=t-0 offsets=1-1 " in line
    assert str(cluster.folder / "t-0") in line
    second.world.read(0, 1)
    (answer,) = second.world.turn()
    assert answer.flags == 0
    assert len(second.world.core.partitions) == 2


def test_holes_that_a_compaction_left_are_not_called_missing(cluster):
    """The topic may be compacted now, or may have been before its policy was changed."""
    with_segments(cluster)
    remove_segment(cluster, "t-0", 1)
    disk, folder = OsDisk(), str(cluster.folder)
    checkpoints.merge(disk, folder, checkpoints.CLEANER, {("t", 0): 2})
    assert cluster.live(clean=True).said() == ""
    checkpoints.merge(disk, folder, checkpoints.CLEANER, {("t", 0): 1})
    assert "offsets-missing" in cluster.live(clean=True).said()
    cluster.image.configs[TOPIC, "t"]["cleanup.policy"] = "compact"
    assert cluster.live(clean=True).said() == ""


def test_what_an_opening_cuts_off_behind_a_hole_is_one_line(cluster):
    """After a kill, above the recovery point: nothing vouches for what lies behind the hole."""
    with_segments(cluster)
    disk, folder = OsDisk(), str(cluster.folder)
    checkpoints.merge(disk, folder, checkpoints.RECOVERY_POINT, {("t", 0): 1})
    remove_segment(cluster, "t-0", 1)
    second = cluster.live()
    (line,) = second.said().splitlines()
    assert "log-cut partition=t-0 end=1 " in line and " segments=2,3 " in line
    assert str(cluster.folder / "t-0") in line
    assert "segment 2 does not follow offset 1" in line
    assert second.world.core.partitions[0].log.end_offset == 1
    assert cluster.live().said() == "", "once is enough"


def test_a_torn_tail_is_one_line(cluster):
    with_segments(cluster)
    disk, folder = OsDisk(), str(cluster.folder)
    checkpoints.merge(disk, folder, checkpoints.RECOVERY_POINT, {("t", 0): 1})
    with open(cluster.folder / "t-0" / f"{3:020d}.log", "ab") as file:
        file.write(b"half of a batch")
    (line,) = cluster.live().said().splitlines()
    assert "log-cut partition=t-0 end=4 bytes=15 segments=none " in line


@pytest.mark.parametrize("known", ["recovery point", "high watermark"])
def test_a_folder_that_is_gone_is_one_line_and_the_partition_begins_anew(cluster, known):
    cluster.topic("t", partitions=2)
    first = cluster.live()
    produce(first, 0, 3)
    end_in_order(first)
    disk, folder = OsDisk(), str(cluster.folder)
    gone = checkpoints.HIGH_WATERMARK
    if known == "high watermark":  # the appliance was killed before the other was written
        gone = checkpoints.RECOVERY_POINT
    checkpoints.merge(disk, folder, gone, {("t", 0): None})
    checkpoints.merge(disk, folder, checkpoints.LOG_START, {("t", 0): 1})
    shutil.rmtree(cluster.folder / "t-0")
    shutil.rmtree(cluster.folder / "t-1")  # never had a record
    second = cluster.live(clean=True)
    (line,) = second.said().splitlines()
    assert "offsets-missing partition=t-0 offsets=1-2 " in line
    assert "the partition starts empty" in line
    assert second.world.core.partitions[0].log.end_offset == 0
    end_in_order(second)
    assert cluster.live(clean=True).said() == "", "once is enough"


def test_a_look_that_fails_takes_no_partition_offline(cluster, monkeypatch):
    with_segments(cluster)

    def refuse(log):
        raise StorageFailed(log.path, errno.EIO, "Input/output error")

    monkeypatch.setattr(offset_gaps, "offsets", refuse)
    second = cluster.live(clean=True)
    assert second.said() == ""
    assert second.world.core.partitions[0].log.end_offset == 4


def test_more_holes_than_a_line_should_have_are_counted(cluster, monkeypatch):
    with_segments(cluster)
    holes = [(at, at) for at in range(25)]
    monkeypatch.setattr(offset_gaps, "offsets", lambda log: holes)
    assert " offsets=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9 more=15 " in cluster.live().said()


def test_a_topic_made_again_after_a_deletion_that_was_cut_short_misses_nothing(cluster):
    cluster.topic("t")
    first = cluster.live()
    produce(first, 0, 3)
    end_in_order(first)
    cluster.remove("t")
    cluster.topic("t", identity=b"again".ljust(16, b"\0"))
    (cluster.folder / "t-0").rename(cluster.folder / f"t-0.{'0' * 32}-delete")
    second = cluster.live()
    assert "offsets-missing" not in second.said()
    assert second.world.core.partitions[1].log.end_offset == 0


def test_a_partition_that_is_made_while_others_are_served_misses_nothing(cluster):
    """What the checkpoints said at the start is of an older topic of that name."""
    folder = str(cluster.folder)
    checkpoints.merge(OsDisk(), folder, checkpoints.RECOVERY_POINT, {("t", 0): 3})
    life = cluster.live()
    topic = cluster.topic("t")
    life.home._open(topic, 0, 0, NOW_MS)
    assert life.world.core.partitions[0].log.end_offset == 0
    assert life.said() == ""
