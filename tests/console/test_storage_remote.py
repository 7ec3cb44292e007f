"""`penstock storage remote`: what the files beside the logs say of segments in a remote store."""

from itertools import count

from appliance.base.os_disk import OsDisk
from appliance.remotelog.journal import NAME
from console.model.storage.remote_segments import DELETED, SERVED, find_partitions
from tests.ioproc.remote.tiering_world import FOLDER, TOPIC_ID, Life, Store
from tests.sim.disk import SimDisk


def tiered_disk():
    disk = SimDisk()
    disk.mkdir("/data")
    disk.sync_dir("/")
    ids = (number.to_bytes(16, "big") for number in count(1))
    life = Life(disk, Store(), {}, ids, local_retention_bytes=1, retention_ms=-1)
    for number in range(12):
        life.append(b"|%06d|" % number + b"x" * 80)
    return disk, life


def test_what_is_copied_and_what_waits_is_told():
    disk, life = tiered_disk()
    for _ in range(7):
        life.step()
    [one] = find_partitions(disk, "/data")
    known = life.known().finished()
    assert (one.topic, one.partition, one.state, one.problem) == ("t", 0, SERVED, "")
    assert (one.remote_segments, one.first, one.end) == (len(known), 0, known[-1].end_offset + 1)
    assert one.remote_bytes == sum(each.segment_size_in_bytes for each in known)
    assert one.waiting == len(life.log.segments) - 1 - len(known) > 0
    assert one.waiting_bytes == life.tiering.measure_lags()[0]
    life.finish()
    life.retain()
    [one] = find_partitions(disk, "/data")
    assert (one.waiting, one.local_segments, one.unfinished) == (0, 1, 0)
    assert one.end == life.log.copied_end


def test_deleted_and_damaged_ones_are_told_and_others_are_not():
    disk, life = tiered_disk()
    life.finish()
    disk.rename(FOLDER, f"{FOLDER}.{TOPIC_ID.hex()}-delete")
    disk.mkdir("/data/other-0")
    [one] = find_partitions(disk, "/data")
    assert (one.topic, one.partition, one.state) == ("t", 0, DELETED)
    file = disk.open_file(f"{FOLDER}.{TOPIC_ID.hex()}-delete/{NAME}", write=True)
    file.pwritev([b"\xff"], 20)
    file.close()
    [one] = find_partitions(disk, "/data")
    assert "corrupt at byte 0" in one.problem and one.remote_segments == 0


def test_a_folder_of_no_appliance_has_none(tmp_path):
    assert find_partitions(OsDisk(), str(tmp_path)) == []
