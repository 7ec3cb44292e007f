"""A log on a full disk: nothing of it is over, nothing half-written stays, what was staged follows
when there is room."""

from random import Random

import pytest
from sim.disk import PAGE, SimDisk
from twin import TOPIC_ID, header_of, stage, stored

from appliance.base.disk import read_file
from appliance.base.errors import DiskFull
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import NewRecord, build_batch
from tests.seeds import each_seed


def new_log(**settings) -> PartitionLog:
    return PartitionLog.create(SimDisk(), "/t-0", TOPIC_ID, LogConfig(**settings), now_ms=0)


def batch(size=100, sequence=0, producer=7) -> bytearray:
    records = [NewRecord(0, None, bytes(size))]
    return bytearray(
        build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=sequence)
    )


def fill(disk, leave=0):
    disk.foreign = 0
    disk.foreign = disk.capacity - disk.used() - leave


def opened(log: PartitionLog, **settings) -> PartitionLog:
    return PartitionLog.open_folder(
        log.disk,
        "/t-0",
        LogConfig(**settings),
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
        clean=False,
        machine_lived=True,
        now_ms=0,
    )


def test_what_found_no_room_is_held_and_written_when_there_is_some():
    log = new_log()
    stage(log, batch(), 0, 0)
    log.commit()
    size = log.active_size
    fill(log.disk, leave=PAGE)
    arena = bytearray(batch(3 * PAGE, sequence=1))
    stage(log, arena, 0, 0)
    with pytest.raises(DiskFull):
        log.commit()
    arena[:] = bytes(len(arena))  # the memory of the caller is another's now
    assert log.has_unwritten and log.failure is None
    assert log.active_size == size == log.disk.size("/t-0/00000000000000000000.log")
    assert len(stored(log)) == 1
    assert log.locate(0, 1 << 20, 1) is not None
    log.sync_now()  # what was written before can become durable
    assert log.recovery_point == 1
    with pytest.raises(DiskFull):
        log.commit()
    log.disk.foreign = 0
    log.commit()
    assert not log.has_unwritten
    assert [header_of(one)[11] for one in stored(log)] == [0, 1]
    assert log.producers.check(header_of(bytes(batch(3 * PAGE, sequence=1)))) == 1  # a duplicate


def test_a_successor_of_a_process_that_held_something_serves_what_was_written():
    log = new_log()
    stage(log, batch(), 0, 0)
    log.commit()
    fill(log.disk)
    stage(log, batch(2 * PAGE, sequence=1), 0, 0)
    with pytest.raises(DiskFull):
        log.commit()
    log.disk.process_death()
    again = opened(log)
    assert again.end_offset == 1
    assert again.producers.check(header_of(bytes(batch(sequence=1)))) == -1  # still to come


def test_no_segment_is_begun_without_room_and_none_is_half_begun():
    log = new_log(segment_bytes=400)
    stage(log, batch(), 0, 0)
    stage(log, batch(sequence=1), 0, 0)
    log.commit()
    for pages in range(4):  # a segment has three files
        fill(log.disk, leave=pages * PAGE)
        if pages < 3:
            with pytest.raises(DiskFull):
                stage(log, batch(sequence=2), 0, 0)
            assert log.end_offset == 2 and not log.has_unwritten
            assert len(log.segments) == 1
            assert not log.disk.exists("/t-0/00000000000000000002.log")
    fill(log.disk, leave=8 * PAGE)
    stage(log, batch(sequence=2), 0, 0)
    log.commit()
    assert [segment.base for segment in log.segments] == [0, 2]
    assert len(stored(log)) == 3


def test_retention_goes_on_while_it_is_full():
    log = new_log(segment_bytes=200, retention_ms=1000, file_delete_delay_ms=0)
    for number in range(4):
        stage(log, batch(sequence=number), 0, 0)
        log.commit()
    log.sync_now()
    fill(log.disk)
    before = log.disk.used()
    for removal in log.retain(1 << 40, log.end_offset):
        removal.run(log.disk)
    assert log.disk.used() < before
    assert log.segments[0].base == 3
    fill(log.disk)
    assert log.retain(1 << 40, log.end_offset) == []  # the active one cannot be rolled now
    log.disk.foreign = 0
    log.retain(1 << 40, log.end_offset)
    log.sync_now()
    assert log.retain(1 << 40, log.end_offset)
    assert log.log_start_offset == 4


def test_epochs_that_found_no_room_come_with_a_later_flush():
    log = new_log()
    stage(log, batch(), 1, 0)
    log.commit()
    log.sync_now()
    fill(log.disk)
    log.begin_epoch(2)
    log.sync_now()
    assert log.epochs.changed
    log.disk.foreign = 0
    log.sync_now()
    log.disk.power_cut(Random(1))
    assert b"2 1\n" in read_file(log.disk, "/t-0/leader-epoch-checkpoint")


@pytest.mark.parametrize("clean", [False, True])
def test_batches_tell_of_epochs_that_found_no_room(clean):
    """The file is older than what is synced: it goes, and an opening reads the batches."""
    log = new_log()
    stage(log, batch(), 1, 0)
    log.sync_now()
    stage(log, batch(sequence=1), 2, 0)
    log.roll(0)
    stage(log, batch(sequence=2), 3, 0)
    log.commit()
    fill(log.disk)
    log.sync_now()
    assert log.recovery_point == 3 and log.epochs.changed
    if clean:
        log.close()
    log.disk.power_cut(Random(1))
    log.disk.foreign = 0
    again = PartitionLog.open_folder(
        log.disk, "/t-0", LogConfig(), recovery_point=3, log_start_offset=0, clean=clean,
        machine_lived=False, now_ms=0,
    )  # fmt: skip
    assert [again.epoch_end(epoch) for epoch in (1, 2, 3)] == [(1, 1), (2, 2), (3, 3)]
    again.sync_now()
    assert read_file(log.disk, "/t-0/leader-epoch-checkpoint") == b"0\n3\n1 0\n2 1\n3 2\n"


@each_seed(60)
def test_whatever_finds_no_room_nothing_written_is_lost_and_all_goes_on(seed):
    """Another program takes and gives room at any moment; every batch lands once, in order."""
    rng = Random(seed)
    settings = {"segment_bytes": rng.choice((600, 3000, 1 << 20)), "index_interval_bytes": 64}
    log = new_log(**settings)
    sequence = written = 0
    for _ in range(80):
        if rng.random() < 0.5:
            fill(log.disk, leave=rng.randint(0, 4) * PAGE)
        else:
            log.disk.foreign = 0
        try:
            if not log.has_unwritten:
                for _ in range(rng.randint(0, 3)):
                    stage(log, batch(rng.randint(1, 2 * PAGE), sequence), 0, 0)
                    sequence += 1
            log.commit()
            written = sequence
        except DiskFull:
            assert log.failure is None
        if rng.random() < 0.3:
            log.sync_now()
        if rng.random() < 0.1:
            log.disk.process_death()
            log = opened(log, **settings)
            sequence = written = log.end_offset
        got = [header_of(one)[11] for one in stored(log)]
        assert got == list(range(len(got))) and written <= len(got) <= sequence
    log.disk.foreign = 0
    log.commit()
    assert [header_of(one)[11] for one in stored(log)] == list(range(sequence))


def test_an_orderly_end_on_a_full_disk_is_one():
    log = new_log(index_interval_bytes=64)
    for number in range(4):
        stage(log, batch(sequence=number), 0, 0)
    log.commit()
    fill(log.disk)
    stage(log, batch(2 * PAGE, sequence=4), 0, 0)
    with pytest.raises(DiskFull):
        log.commit()
    log.close()
    assert log.recovery_point == 4
    log.disk.power_cut(Random(1))
    again = PartitionLog.open_folder(
        log.disk, "/t-0", LogConfig(), recovery_point=4, log_start_offset=0, clean=True,
        machine_lived=False, now_ms=0,
    )  # fmt: skip
    assert again.end_offset == 4 and len(stored(again)) == 4
    assert again.producers.check(header_of(bytes(batch(sequence=4)))) == -1


@pytest.mark.parametrize("rolls", [False, True])
def test_what_is_taken_back_was_never_there(rolls):
    log = new_log(segment_bytes=900 if rolls else 1 << 20, index_interval_bytes=64)
    plain = [bytearray(build_batch([NewRecord(n, None, bytes(100))])) for n in range(3)]
    for one in plain:
        stage(log, one, 0, 0)
    log.commit()
    before = (log.end_offset, log.size, log.active.newest, stored(log))
    fill(log.disk, leave=12 * PAGE if rolls else 0)
    records = [NewRecord(99, None, bytes(40 * PAGE))]
    stage(log, bytearray(build_batch(records)), 1, 0)
    with pytest.raises(DiskFull):
        log.commit()
    log.take_back(0)
    assert not log.has_unwritten
    assert (log.end_offset, log.size, stored(log)) == (before[0], before[1], before[3])
    assert log.active.newest == (-1 if rolls else before[2])
    log.disk.foreign = 0
    stage(log, bytearray(build_batch([NewRecord(3, None, b"later")])), 1, 0)
    log.commit()
    assert log.end_offset == 4 and log.offset_for_timestamp(3, 4) == (3, 3, 1)
    log.sync_now()
    log.disk.power_cut(Random(3))
    assert opened(log, segment_bytes=900 if rolls else 1 << 20).end_offset == 4


def test_an_index_for_which_an_opening_has_no_room_is_written_later():
    """A process died between the files of a new segment, on a disk that is full now."""
    log = new_log(index_interval_bytes=64)
    stage(log, batch(), 0, 0)
    log.commit()
    log.disk.process_death()
    names = [f"/t-0/{0:020d}.{suffix}" for suffix in ("index", "timeindex")]
    for name in names:
        log.disk.unlink(name)
    fill(log.disk)
    again = opened(log)
    again.sync_now()
    assert again.failure is None and not any(map(log.disk.exists, names))
    log.disk.foreign = 0
    again.close()
    assert all(map(log.disk.exists, names))


def test_an_epoch_whose_first_batch_is_taken_back_is_none():
    """Where an epoch has no batch, its node would take itself for one that has more of the log."""
    log = new_log()
    stage(log, bytearray(build_batch([NewRecord(0, None, bytes(100))])), 1, 0)
    log.commit()
    fill(log.disk)
    stage(log, bytearray(build_batch([NewRecord(1, None, bytes(2 * PAGE))])), 2, 0)
    with pytest.raises(DiskFull):
        log.commit()
    log.take_back(0)
    assert log.latest_epoch == 1 and log.epoch_end(2) == (-1, -1)
    log.disk.foreign = 0
    stage(log, bytearray(build_batch([NewRecord(2, None, bytes(100))])), 2, 0)
    log.commit()
    assert log.epoch_end(1) == (1, 1) and log.epoch_end(2) == (2, 2)
