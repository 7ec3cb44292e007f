"""When a log rolls, what it drops and when, and what is left of it when a file refuses."""

import errno
from random import Random

import pytest
from sim.disk import SimDisk
from twin import (
    TOPIC_ID,
    aborted,
    header_of,
    marker,
    small_batch,
    stage,
    stored,
    transactional,
)

from appliance.base.errors import StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore.active import WRITEBACK_BYTES
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import NewRecord, build_batch


def new_log(**settings) -> PartitionLog:
    disk = SimDisk()
    return PartitionLog.create(disk, "/t-0", TOPIC_ID, LogConfig(**settings), now_ms=0)


def append(log: PartitionLog, timestamp: int = 0, size: int = 100, now_ms: int = 0) -> int:
    batch = bytearray(build_batch([NewRecord(timestamp, None, bytes(size))]))
    stage(log, batch, 0, now_ms)
    log.commit()
    return len(batch)


def reopened(log: PartitionLog, now_ms: int = 0) -> PartitionLog:
    """The same log after an orderly end."""
    log.close()
    return PartitionLog.open_folder(
        log.disk,
        "/t-0",
        log.config,
        recovery_point=log.end_offset,
        log_start_offset=0,
        clean=True,
        machine_lived=False,
        now_ms=now_ms,
    )


def bases(log: PartitionLog) -> list[int]:
    return [segment.base for segment in log.segments]


def test_rolls_before_a_batch_that_does_not_fit():
    log = new_log(segment_bytes=1000)
    size = append(log)
    for _ in range(20):
        append(log)
    per_segment = 1000 // size
    assert bases(log) == list(range(0, 21, per_segment))
    assert log.size == 21 * size


def test_a_batch_bigger_than_a_segment_has_one_for_itself():
    log = new_log(segment_bytes=1000)
    for size in (10, 3000, 10):
        append(log, size=size)
    assert bases(log) == [0, 1, 2]


def test_rolls_by_the_records_time_from_the_first_batch_on():
    log = new_log(segment_ms=1000)
    for timestamp in (5000, 5900, 6000, 6001, 7001, 7002):
        append(log, timestamp)
    assert bases(log) == [0, 3, 5]


def test_the_time_of_the_first_batch_survives_a_restart():
    log = new_log(segment_ms=1000)
    append(log, 5000)
    again = reopened(log)
    append(again, 6000)
    append(again, 6001)
    assert bases(again) == [0, 2]


def test_jitter_rolls_earlier_but_the_same_each_time():
    seen = set()
    for _ in range(2):
        log = new_log(segment_ms=100_000, segment_jitter_ms=99_999)
        for timestamp in range(0, 200_000, 500):
            append(log, timestamp)
        seen.add(tuple(bases(log)))
    (only,) = seen
    assert len(only) > 2


BEGUN = 1_700_000_000_000
LIMITS = {
    "segment.ms lowered": ({}, {"segment_ms": 100}, True),
    "segment.ms raised": ({"segment_ms": 100}, {"segment_ms": 100_000}, False),
    "segment.bytes lowered": ({}, {"segment_bytes": 200}, True),
    "segment.bytes raised": ({"segment_bytes": 300}, {"segment_bytes": 100_000}, False),
    "segment.jitter.ms": (
        {"segment_ms": 1010},
        {"segment_ms": 1010, "segment_jitter_ms": 900},
        True,
    ),
    "max.compaction.lag.ms": (
        {"compact": True},
        {"compact": True, "max_compaction_lag_ms": 100},
        True,
    ),
    "cleanup.policy": (
        {"max_compaction_lag_ms": 100},
        {"compact": True, "max_compaction_lag_ms": 100},
        True,
    ),
    "compacted no more": (
        {"compact": True, "max_compaction_lag_ms": 100},
        {"max_compaction_lag_ms": 100},
        False,
    ),
    "segment.index.bytes": ({}, {"segment_index_bytes": 8}, True),
}


@pytest.mark.parametrize(("before", "after", "rolls"), LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_limit_that_changes_holds_for_the_active_segment(before, after, rolls, restarted):
    log = new_log(index_interval_bytes=0, **before)
    append(log, BEGUN)
    append(log, BEGUN, size=1)
    if restarted:
        log = reopened(log)
    log.set_config(LogConfig(index_interval_bytes=0, **after))
    assert len(log.segments) == 1
    append(log, BEGUN + 1000)
    assert len(log.segments) == (2 if rolls else 1)


def test_a_limit_that_changes_holds_for_a_log_that_went_back():
    log = new_log(segment_ms=100)
    for timestamp in (BEGUN, BEGUN + 1, BEGUN + 2):
        append(log, timestamp)
    log.truncate_to(1, 0)
    log.set_config(LogConfig(segment_ms=2000))
    append(log, BEGUN + 1000)
    append(log, BEGUN + 2000)
    assert bases(log) == [0]
    log.set_config(LogConfig(segment_ms=1999))
    append(log, BEGUN + 2000)
    assert bases(log) == [0, 3]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_segment_whose_first_batch_has_no_time_rolls_by_the_clock(restarted):
    log = new_log(segment_ms=100_000)
    append(log, -1, now_ms=BEGUN)
    append(log, BEGUN - 1_000_000, now_ms=BEGUN + 1)
    if restarted:
        log = reopened(log, BEGUN)
    append(log, BEGUN + 1_000_000, now_ms=BEGUN + 100_000)
    assert bases(log) == [0]
    log.set_config(LogConfig(segment_ms=1000))
    append(log, BEGUN, now_ms=BEGUN + 1001)
    assert bases(log) == [0, 3]


def test_rolls_when_the_index_is_full():
    log = new_log(segment_index_bytes=80, index_interval_bytes=0)
    for _ in range(30):
        append(log)
    for base in bases(log)[:-1]:
        assert log.disk.size(f"/t-0/{base:020d}.index") <= 80
    assert len(log.segments) == 3


def test_rolls_before_a_relative_offset_overflows():
    log = new_log()
    append(log)
    header = header_of(bytes(build_batch([NewRecord(0, None, b"")])))
    far = bytearray(build_batch([NewRecord(0, None, b"")]))
    log.stage(memoryview(far), header._replace(last_offset_delta=(1 << 31) - 1), 0, 0)
    log.commit()
    assert bases(log) == [0, 1]


# Retention ----------------------------------------------------------------------------------------


def aged(**settings) -> PartitionLog:
    """Segments of two batches each, one second apart."""
    log = new_log(segment_bytes=350, **settings)
    for second in range(10):
        append(log, second * 1000)
    assert bases(log) == [0, 2, 4, 6, 8]
    log.sync_now()
    return log


def test_drops_by_time_what_is_older_and_below_the_high_watermark():
    log = aged(retention_ms=5000, file_delete_delay_ms=60_000)
    assert log.retain(6000, 10) == []
    removals = log.retain(9500, 10)  # newest of each: 1, 3, 5, 7, 9 s
    assert bases(log) == [4, 6, 8]
    assert log.log_start_offset == 4
    assert {removal.due_ms for removal in removals} == {69_500}
    assert len(stored(log)) == 6
    assert log.disk.exists("/t-0/00000000000000000000.log.deleted")
    for removal in removals:
        removal.run(log.disk)
        removal.run(log.disk)
    assert not [name for name in log.disk.listdir("/t-0") if "deleted" in name]
    assert (
        log.retain(20_000, 5) == []
    )  # nothing of the segment [4, 6) may go with the watermark at 5


def test_drops_by_size_only_whole_segments():
    log = aged(retention_ms=-1, retention_bytes=3 * 340)
    size = log.size // 5
    log.set_config(LogConfig(retention_ms=-1, retention_bytes=3 * size + 1))
    log.retain(0, 10)
    assert bases(log) == [2, 4, 6, 8]
    log.set_config(LogConfig(retention_ms=-1, retention_bytes=0))
    log.retain(0, 10)
    log.sync_now()
    assert log.end_offset == 10
    assert log.size == 0 or log.retain(0, 10)
    assert log.size == 0
    assert log.log_start_offset == 10


def test_the_active_segment_is_rolled_when_all_of_it_expired():
    log = aged(retention_ms=5000)
    log.retain(1_000_000, 10)
    assert bases(log) == [8, 10]  # the rolled one must be synced before it may go
    log.sync_now()
    log.retain(1_000_000, 10)
    assert bases(log) == [10]
    assert (log.log_start_offset, log.end_offset) == (10, 10)
    append(log, 1_000_000)
    assert len(stored(log)) == 1


def test_a_timestamp_from_the_future_does_not_keep_a_segment_for_ever():
    log = new_log(segment_bytes=350, retention_ms=5000)
    log.disk.now_ms = 1000
    for _ in range(4):
        append(log, 10**15)
    log.sync_now()
    assert log.retain(5000, 4) == []
    log.retain(6001, 4)
    assert bases(log)[0] == 2 or bases(log)[0] == 4


def test_deleted_records_take_their_segments_along_even_without_the_delete_policy():
    log = aged(delete=False, compact=True, retention_ms=1, retention_bytes=1)
    assert log.retain(10**9, 10) == []
    log.advance_log_start(5)
    assert len(stored(log)) == 5
    log.retain(10**9, 10)
    assert bases(log) == [4, 6, 8]
    assert log.log_start_offset == 5


def test_a_deleted_partition_is_renamed_and_removed_later():
    log = aged(file_delete_delay_ms=7)
    removal = log.delete("ab" * 16, 1000)
    assert log.disk.listdir("/") == [f"t-0.{'ab' * 16}-delete"]
    assert removal.due_ms == 1007
    removal.run(log.disk)
    assert log.disk.listdir("/") == []
    assert log.disk.open_files == 0
    with pytest.raises(StorageFailed):
        append(log)


# Refusals -----------------------------------------------------------------------------------------


def test_a_refused_write_is_final_and_leaves_nothing_visible():
    log = new_log()
    append(log)
    log.disk.refusing[".log", "write"] = errno.EIO
    end, size = log.end_offset, log.size
    with pytest.raises(StorageFailed) as refused:
        append(log)
    assert refused.value.errno == errno.EIO
    log.disk.refusing.clear()
    assert (log.end_offset, log.size) == (end, size)
    for call in (lambda: append(log), log.commit, log.flush_job, log.sync_now):
        with pytest.raises(StorageFailed):
            call()
    assert len(stored(log)) == 1  # reading goes on
    log.close()
    assert log.disk.open_files == 0


@pytest.mark.parametrize("kind", ["sync", "sync_dir"])
def test_a_refused_sync_is_final(kind):
    log = new_log()
    append(log)
    log.disk.refusing["/t-0", kind] = errno.EIO
    with pytest.raises(StorageFailed):
        log.sync_now()
    log.disk.refusing.clear()
    assert log.recovery_point == 0
    with pytest.raises(StorageFailed):
        log.sync_now()


@pytest.mark.parametrize("part", [".log", ".index", ".snapshot"])
def test_a_roll_that_is_refused_takes_no_batch(part):
    log = new_log(segment_bytes=300)
    append(log)
    append(log)
    log.disk.refusing[part, "create" if part != ".index" else "write"] = errno.EMFILE
    if part == ".index":
        log.disk.refusing[part, "create"] = errno.EMFILE
    before = stored(log)
    with pytest.raises(StorageFailed):
        append(log)
    assert stored(log) == before
    assert log.end_offset == 2


def test_a_creation_that_was_cut_short_is_begun_again_but_records_are_never_removed():
    disk = SimDisk()
    disk.mkdir("/t-0")
    disk.create("/t-0/00000000000000000000.log").close()
    log = PartitionLog.create(disk, "/t-0", TOPIC_ID, LogConfig(), now_ms=0)
    append(log)
    log.close()
    with pytest.raises(StorageFailed, match="has records"):
        PartitionLog.create(disk, "/t-0", TOPIC_ID, LogConfig(), now_ms=0)


def test_one_write_per_commit_and_one_sync_for_many():
    log = new_log()
    log.sync_now()
    steps = log.disk.steps
    for _ in range(5):
        stage(log, small_batch(Random(1), 5), 0, 0)
    log.commit()
    first = log.disk.steps
    assert first - steps <= 4  # the new epoch's file besides
    for _ in range(1500):
        stage(log, small_batch(Random(1), 5), 0, 0)
    log.commit()
    log.sync_now()
    assert log.recovery_point == log.end_offset
    assert log.unsynced_bytes == 0
    assert log.flush_job() is None


def test_a_flush_covers_what_was_committed_when_it_began():
    log = new_log(segment_bytes=300)
    append(log)
    job = log.flush_job()
    for _ in range(5):
        append(log)
    job.run()
    log.flushed(job)
    assert log.recovery_point == 1
    assert log.unsynced_bytes > 0
    log.sync_now()
    assert log.recovery_point == 6


def test_writing_to_the_disk_is_begun_every_few_mib_each_byte_once(monkeypatch):
    log = new_log(segment_bytes=20 << 20)
    told = []
    file = type(log.active.file)
    monkeypatch.setattr(file, "start_writeback", lambda self, at, size: told.append((at, size)))
    step = append(log, size=1 << 20)
    for _ in range(30):
        append(log, size=1 << 20)
    assert bases(log) == [0, 19]
    per_call = -(-WRITEBACK_BYTES // step)
    assert told == [
        (0, per_call * step),
        (per_call * step, per_call * step),
        (0, per_call * step),
    ]


def test_a_refused_writeback_is_final(monkeypatch):
    log = new_log()

    def refuse(self, at, size):
        raise StorageFailed("/t-0/log", errno.EIO, "refused")

    monkeypatch.setattr(type(log.active.file), "start_writeback", refuse)
    append(log, size=WRITEBACK_BYTES - 4096)
    for _ in range(2):
        with pytest.raises(StorageFailed):
            append(log, size=8192)


def test_what_is_dropped_takes_its_aborted_transactions_with_it():
    log = PartitionLog.create(
        SimDisk(), "/t-0", TOPIC_ID, LogConfig(segment_bytes=400, retention_bytes=500), now_ms=0
    )
    for n in range(8):
        stage(log, transactional(small_batch(Random(n), 0, (9, 0, n), most=1)), 0, 0)
        stage(log, marker(9, 0, committed=n % 2 == 0), 0, 0)
        log.commit()
    stage(log, transactional(small_batch(Random(1), 0, (10, 0, 0), most=1)), 0, 0)
    log.commit()
    log.sync_now()
    assert [one[2] for one in aborted(log)] == [3, 7, 11, 15]
    for removal in log.retain(0, log.end_offset):
        removal.run(log.disk)
    assert log.log_start_offset > 3
    left = [one for one in (3, 7, 11, 15) if one >= log.log_start_offset]
    assert [one[2] for one in aborted(log)] == left
    assert log.producers.open == {10: 16}
    log.recovery_point = 0
    log.begin_anew(100)
    assert aborted(log) == []
    assert log.producers.open == {}
    assert not [name for name in log.disk.listdir("/t-0") if name.endswith(".txnindex")]
