"""What the orderly end of a log costs, in changes of the disk, and that the next start finds all of
it."""

import pytest
from sim.disk import SimDisk
from twin import TOPIC_ID, stage

from appliance.base.disk import read_file
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.logstore.producer_snapshot import encode_snapshot
from appliance.wire.batch import NewRecord, build_batch

CONFIG = LogConfig(index_interval_bytes=100, segment_bytes=2000, file_delete_delay_ms=0)


@pytest.fixture
def disk():
    """A folder with one log, ended in an orderly way behind twenty records of a producer."""
    disk = SimDisk()
    log = PartitionLog.create(disk, "/t-0", TOPIC_ID, CONFIG, now_ms=0)
    for number in range(20):
        append(log, number)
    log.close()
    disk.kinds = []
    change = disk.change
    disk.change = lambda path, kind: (disk.kinds.append(kind), change(path, kind))
    return disk


def append(log, number):
    one = [NewRecord(number, None, bytes(100))]
    sent = build_batch(one, producer_id=7, producer_epoch=0, base_sequence=number)
    stage(log, bytearray(sent), log.latest_epoch if log.latest_epoch > 0 else 0, 0)
    log.commit()


def reopened(disk, clean=True):
    log = PartitionLog.open_folder(
        disk, "/t-0", CONFIG, recovery_point=20 if clean else 0, log_start_offset=0, clean=clean,
        machine_lived=False, now_ms=0,
    )  # fmt: skip
    disk.kinds.clear()
    return log


def whole(log, end=20):
    """It is served as it was left: where a record lies, and what its producer sent last."""
    index = [(s.base, list(s.read_indexes(log.disk)[0].positions)) for s in log.segments]
    where = [log.locate(offset, 1, end) for offset in range(log.log_start_offset, end)]
    return index, where, encode_snapshot(log.producers), log.end_offset, log.recovery_point


def test_an_end_changes_nothing_of_a_log_that_nothing_was_done_to(disk):
    first = whole(reopened(disk))
    for _ in range(3):
        log = reopened(disk)
        before = disk.steps
        log.close()
        assert disk.kinds == [] and disk.steps == before
        disk.power_cut()
        assert whole(reopened(disk)) == first
    assert log.recovery_point == log.end_offset == 20


def appended(log):
    append(log, 20)
    log.sync_now()


def trimmed(log):
    log.advance_log_start(15)


def retained(log):
    log.advance_log_start(15)
    for removal in log.retain(0, 20):
        removal.run(log.disk)


def of_a_new_epoch(log):
    log.begin_epoch(3)


def rolled(log):
    log.roll(0)


@pytest.mark.parametrize("done", [appended, trimmed, retained, of_a_new_epoch, rolled])
def test_an_end_syncs_what_was_done(disk, done):
    log = reopened(disk)
    done(log)
    disk.kinds.clear()
    log.close()
    assert disk.kinds.count("sync_dir") >= 1 and disk.kinds.count("sync") >= 2
    epochs, end = log.epochs.encode(), log.end_offset
    disk.power_cut()
    again = reopened(disk)
    assert again.end_offset == again.recovery_point == end
    assert again.epochs.encode() == epochs


def test_a_new_epoch_is_written_down_by_the_flush_that_makes_its_batches_durable(disk):
    """A node that is to lead thousands writes no file for each of them; what dies before the flush
    is read from the batches."""
    log, name = reopened(disk), "/t-0/leader-epoch-checkpoint"
    log.begin_epoch(3)
    assert disk.kinds == []
    one = [NewRecord(20, None, bytes(100))]
    sent = build_batch(one, producer_id=7, producer_epoch=0, base_sequence=20)
    stage(log, bytearray(sent), 3, 0)
    log.commit()
    assert b"3 20\n" not in read_file(disk, name)
    disk.process_death()
    log = PartitionLog.open_folder(
        disk, "/t-0", CONFIG, recovery_point=20, log_start_offset=0, clean=False,
        machine_lived=True, now_ms=0,
    )  # fmt: skip
    assert log.end_offset == 21 and log.epoch_end(2) == (0, 20) and log.epoch_end(3) == (3, 21)
    log.begin_epoch(5)
    append(log, 21)
    assert log.recovery_point == 21
    log.sync_now()
    assert log.recovery_point == 22 and not log.epochs.changed
    disk.power_cut()
    assert b"0 0\n3 20\n5 21\n" in read_file(disk, name)


def test_an_end_writes_what_a_start_had_to_build_again(disk):
    reopened(disk).let_go()
    disk.unlink("/t-0/" + f"{20:020d}.snapshot")
    for clean in (True, False):
        log = reopened(disk, clean)
        log.close()
        assert disk.kinds.count("sync_dir") >= 1
        log = reopened(disk)
        log.close()
        assert disk.kinds == [], "and now it is as it was left"
        reopened(disk).let_go()


def test_an_end_writes_an_index_that_had_lost_its_last_entries(disk):
    log = reopened(disk)
    path, _ = log.active.index_paths()
    log.let_go()
    file = disk.open_file(path, write=True)
    file.truncate(8)
    file.close()
    log = reopened(disk)
    log.close()
    assert disk.kinds.count("sync") >= 2
