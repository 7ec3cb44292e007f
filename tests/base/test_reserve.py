"""The reserve: who may draw on it, slice by slice, and who fills it."""

import os

import pytest

from appliance.base import reserve
from appliance.base.disk import read_file, write_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import RESERVE, SLICE, ReservedDisk, may_draw
from tests.sim.disk import PAGE, SimDisk

MIB = 1 << 20
TOTAL = 256 * MIB


@pytest.fixture
def full():
    """A full file system with a whole reserve."""
    disk = SimDisk()
    disk.capacity = TOTAL
    disk.mkdir("/d")
    disk.mkdir("/d/t-0")
    while not reserve.fill(disk, "/d", TOTAL):
        pass
    disk.foreign = disk.free()
    return disk


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("/d/t-0/00000000000000000000.log", False),
        ("/d/t-0.aa-future/00000000000000000000.index", False),
        ("/d/t-0/00000000000000000000.log.cleaned", False),
        ("/d/t-0/00000000000000000000.log.swap", False),
        ("/d/t-0/00000000000000000009.snapshot", False),
        ("/d/__cluster_metadata-0/00000000000000000009-0000000001.checkpoint.tmp", False),
        ("/d/__cluster_metadata-0/00000000000000000000.log", True),
        ("/d/__consumer_offsets-7/00000000000000000000.log", True),
        ("/d/__cluster_metadata-0/quorum-state.tmp", True),
        ("/d/log-start-offset-checkpoint.tmp", True),
        ("/d/t-0/00000000000000000000.index", True),
        ("/d/t-0/penstock-deleted.tmp", True),
    ],
)
def test_records_copies_and_snapshots_never_draw_on_it(path, may):
    assert may_draw(path) == may


def test_a_small_file_is_written_on_a_full_disk_and_costs_a_slice(full):
    disk = ReservedDisk(full, ["/d"])
    with pytest.raises(DiskFull):
        write_file(full, "/d/x", b"v")
    write_file(disk, "/d/x", b"v")
    assert read_file(disk, "/d/x") == b"v"
    assert reserve.left(full, "/d") == reserve.size_for(TOTAL) - SLICE


def test_records_find_no_room_and_leave_the_reserve_alone(full):
    disk = ReservedDisk(full, ["/d"])
    with pytest.raises(DiskFull):
        disk.create("/d/t-0/00000000000000000000.log")
    assert reserve.left(full, "/d") == reserve.size_for(TOTAL)


def test_when_it_is_used_up_a_write_is_refused(full):
    disk = ReservedDisk(full, ["/d"])
    use_up(full, disk)
    with pytest.raises(DiskFull):
        write_file(disk, "/d/more", b"v")


def use_up(full, disk):
    """All that is not kept for votes."""
    for number in range(reserve.size_for(TOTAL) // SLICE - 2):
        write_file(disk, f"/d/{number}", bytes(SLICE - 2 * PAGE))
        full.foreign += full.free()  # another program takes what is left
    assert reserve.left(full, "/d") == 2 * SLICE


def test_a_vote_is_written_when_nothing_else_is(full):
    disk = ReservedDisk(full, ["/d"])
    full.foreign -= PAGE
    full.mkdir("/d/__cluster_metadata-0")
    use_up(full, disk)
    path = "/d/__cluster_metadata-0/quorum-state"
    for vote in (b"7", b"8"):
        full.foreign += full.free()
        write_file(disk, path, vote)
        assert read_file(disk, path) == vote
    assert reserve.left(full, "/d") == 0
    full.foreign += full.free()
    with pytest.raises(DiskFull):
        write_file(disk, path, b"9")
    assert read_file(disk, path) == b"8"


def test_it_is_of_real_blocks_and_gives_them_back(tmp_path):
    disk = OsDisk()
    folder = str(tmp_path)
    try:
        while not reserve.fill(disk, folder, TOTAL):
            pass
    except StorageFailed as refused:
        pytest.skip(f"room cannot be set aside here: {refused}")
    path = tmp_path / RESERVE
    whole = os.stat(path).st_blocks * 512
    assert whole >= reserve.size_for(TOTAL) == path.stat().st_size
    assert reserve.give_slice(disk, folder)
    assert os.stat(path).st_blocks * 512 <= whole - SLICE
    assert reserve.spare(disk, folder, TOTAL) == reserve.size_for(TOTAL) // 2 - SLICE
    while reserve.give_slice(disk, folder):
        pass
    assert reserve.left(disk, folder) == 0


@pytest.mark.parametrize(("total", "size"), [(0, 2), (64 * MIB, 2), (TOTAL, 4), (1 << 40, 8)])
def test_how_large_it_is(total, size):
    assert reserve.size_for(total) == size * MIB
