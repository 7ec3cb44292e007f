"""After an end without order logs are opened side by side, and each of them as if it were alone."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from core_world import NOW_MS, batch
from test_acknowledged import fresh_table

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.lifecycle.opened_partition import WantedLog
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.logstore.log import PartitionLog
from appliance.metadata.log_dirs import LogDirs
from appliance.wire.batch_header import read_header

TOPIC_ID, OTHER = b"t" * 16, b"o" * 16
COUNT, TORN, DAMAGED, FOREIGN, MISSING, UNKNOWN = 40, 7, 11, 20, 33, 35
DISK, CONFIG = OsDisk(), LogConfig()


@pytest.fixture
def folder(tmp_path):
    """Logs of several batches; one ends in half a batch, one is damaged below its recovery point,
    one is of another topic, and one is gone."""
    data = tmp_path / "data"
    data.mkdir()
    for index in range(COUNT):
        path, topic_id = data / f"t-{index}", OTHER if index == FOREIGN else TOPIC_ID
        log = PartitionLog.create(DISK, str(path), topic_id, CONFIG, now_ms=NOW_MS)
        for number in range(index % 5 + 2):
            data_of = memoryview(bytearray(batch(b"%d" % number * 100)))
            log.stage(data_of, read_header(data_of), 0, NOW_MS)
            log.commit()
        log.sync_now()
        log.let_go()
        segment = path / f"{0:020d}.log"
        if index == TORN:
            segment.write_bytes(segment.read_bytes()[:-10])
        if index == DAMAGED:
            segment.write_bytes(bytes(50) + segment.read_bytes()[50:])
    checkpoints.merge(DISK, str(data), checkpoints.RECOVERY_POINT, {("t", DAMAGED): 2})
    shutil.rmtree(data / f"t-{MISSING}")
    return data


def opener_of(data, side_by_side):
    dirs = LogDirs.of(str(data))
    return PartitionOpener(DISK, dirs, fresh_table(), clean=False, side_by_side=side_by_side)


def open_files(folder):
    """Paths of the files below it that this process has open."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(os.readlink(one))
    return [one for one in found if one.startswith(str(folder))]


def wanted(place):
    """Of one it is not known before."""
    return None if place[1] == UNKNOWN else WantedLog("t", place[1], TOPIC_ID, 0, CONFIG, NOW_MS)


def opened(data, side_by_side):
    """What became of each: its end and cut, or why it could not be opened."""
    opener, found = opener_of(data, side_by_side), []
    for _, index in opener.open_ahead([(None, one) for one in range(COUNT)], wanted):
        try:
            log, directory, *_ = opener.open_log("t", index, TOPIC_ID, 0, CONFIG, NOW_MS)
        except StorageFailed as failure:
            found.append((index, str(failure).replace(str(data), "")))
            continue
        cut = None if log.cut is None else log.cut.offset
        found.append((index, log.end_offset, log.recovery_point, directory, cut))
        log.let_go()
    return found, [one.replace(str(data), "") for one in opener.strays]


def test_they_are_what_each_of_them_is_alone(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "twin")
    side_by_side, strays = opened(folder, 4)
    assert open_files(folder) == []
    assert (side_by_side, strays) == opened(tmp_path / "twin", 0)
    ends = {one[0]: one[1] for one in side_by_side}
    assert ends[TORN] == TORN % 5 + 1 and ends[FOREIGN] == ends[MISSING] == 0
    assert "corrupt at offset 0" in ends[DAMAGED] and len(strays) == 1
    assert all(ends[n] == n % 5 + 2 for n in ends if n not in (TORN, DAMAGED, FOREIGN, MISSING))


def test_whoever_stops_in_the_middle_leaves_no_file_open(folder):
    opener = opener_of(folder, 4)
    places = opener.open_ahead([(None, one) for one in range(COUNT)], wanted)
    _, first = next(places)
    opener.open_log("t", first, TOPIC_ID, 0, CONFIG, NOW_MS).log.let_go()
    places.close()
    assert open_files(folder) == []
    log, *_ = opener.open_log("t", 2, TOPIC_ID, 0, CONFIG, NOW_MS)
    assert log.end_offset == 4
    log.let_go()
