"""Where a cut log ends, what a follower refuses, and what is left when the world ends meanwhile."""

from contextlib import suppress
from errno import EIO
from random import Random

import pytest
from crc32c import crc32c
from sim.disk import PAGE, PowerCut, SimDisk
from test_log_goes_back import PATH, answers, new_log, reopened
from test_log_power_cut import Least
from twin import TOPIC_ID, producer_view, stage, stored

from appliance.base.errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    OFFSET_OUT_OF_RANGE,
    DiskFull,
    PeerError,
    StorageFailed,
)
from appliance.config.log_config import LogConfig
from appliance.logstore.journal import Continuation, Tail
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import NewRecord, build_batch, read_header


def filled(**settings) -> PartitionLog:
    """Ten batches of three records, of producer 1."""
    log = new_log(**settings)
    for n in range(10):
        stage(log, three(n), n // 4, 0)
        log.commit()
    return log


def three(n: int) -> bytearray:
    records = [NewRecord(10 * n + k, b"k", bytes(150)) for k in range(3)]
    return bytearray(build_batch(records, producer_id=1, producer_epoch=0, base_sequence=3 * n))


def test_within_a_batch_it_goes_to_the_start_of_it():
    for offset in range(30, -1, -1):
        log = filled()
        assert log.truncate_to(offset, 0) == offset // 3 * 3 == log.end_offset
        assert len(stored(log)) == offset // 3
        assert log.latest_epoch == (offset // 3 - 1) // 4 if offset >= 3 else -1
        (known,) = log.producers.producers.values() or (None,)
        assert (known.next_sequence if known else 0) == offset // 3 * 3


def test_whoever_cuts_has_lowered_the_recovery_point_and_let_syncs_end():
    """Or an opening finds less than it believes in, and a sync counts what is gone."""
    log = filled()
    log.sync_now()
    with pytest.raises(AssertionError, match="below the recovery point"):
        log.truncate_to(27, 0)
    log.recovery_point = 27
    with pytest.raises(AssertionError, match="below the recovery point"):
        log.truncate_to(26, 0)
    with pytest.raises(AssertionError, match="no segment"):
        log.begin_anew(40)
    log = filled()
    job = log.flush_job()
    with pytest.raises(AssertionError, match="a sync"):
        log.truncate_to(27, 0)
    job.run()
    log.flushed(job)
    log.recovery_point = 27
    assert log.truncate_to(28, 0) == 27


def test_behind_the_end_only_an_epoch_without_records_goes():
    log = filled()
    log.begin_epoch(7)
    layout = log.layout
    assert log.truncate_to(40, 0) == 30
    assert (log.latest_epoch, log.layout) == (2, layout)
    assert b"7 30" not in bytes(log.disk.root.names["t-0"].names["leader-epoch-checkpoint"].data)


def test_below_the_log_start_it_begins_anew_there():
    log = filled()
    log.advance_log_start(12)
    assert log.truncate_to(9, 0) == 9
    assert (log.log_start_offset, log.end_offset, log.size) == (9, 9, 0)
    assert [segment.base for segment in log.segments] == [9]
    assert log.producers.producers == {} and log.latest_epoch == -1
    log = reopened(log, clean=False)
    assert (log.log_start_offset, log.end_offset) == (9, 9)
    stage(log, three(0), 3, 0)
    log.commit()
    assert log.epoch_end(3) == (3, 12)


def test_no_end_lies_below_the_log_start():
    """Where compaction left a gap around it, and the batch behind the gap goes."""
    log = new_log()
    log.follow(memoryview(led((0, 2), (40, 3))), 0, 3)
    log.commit()
    log.advance_log_start(20)
    assert log.truncate_to(30, 0) == 20
    assert (log.log_start_offset, log.end_offset, stored(log)) == (20, 20, [])
    log = reopened(log, clean=False)
    assert (log.log_start_offset, log.end_offset) == (20, 20)


def test_a_follower_whose_leader_begins_behind_its_end_begins_there():
    log = filled()
    log.sync_now()
    log.recovery_point = 0
    log.begin_anew(100)
    assert (log.log_start_offset, log.end_offset, log.recovery_point) == (100, 100, 100)
    batch = three(0)
    batch[0:16] = bytes(7) + b"\x67" + batch[8:12] + bytes(4)  # at 103, in epoch 0
    log.follow(memoryview(bytes(batch)), 0, 9)
    log.commit()
    log.sync_now()
    log = reopened(log, clean=False)
    assert (log.log_start_offset, log.end_offset, len(stored(log))) == (100, 106, 1)
    assert log.disk.listdir(PATH)[0] == f"{100:020d}.index"


def test_a_power_cut_while_a_log_begins_anew_leaves_one_that_opens():
    """The old one as far as it was, or the new one: never one behind the other."""
    step, begun = 0, False
    while not begun:
        step += 1
        log = filled(segment_bytes=1300)
        old = stored(log)
        log.sync_now()
        log.recovery_point = 0
        disk = log.disk
        disk.crash_at = disk.steps + step
        try:
            log.begin_anew(100)
            log.follow(memoryview(led((100, 3))), 0, 9)
            log.commit()
            begun = True
        except PowerCut:
            pass
        disk.power_cut(Random(step))
        log = PartitionLog.open_folder(
            disk, PATH, log.config, recovery_point=0, log_start_offset=0, clean=False,
            machine_lived=False, now_ms=0,
        )  # fmt: skip
        found = stored(log)
        assert found in (old[: len(found)], [led((100, 3))]), step
        assert log.end_offset in (100, 103) or log.end_offset == 3 * len(found), step
    assert step > 5


@pytest.mark.parametrize("by_opening", [False, True])
def test_a_log_that_began_anew_opens_by_its_recovery_point_after_a_power_cut(by_opening):
    """Checkpoints may name it before anything is written behind it."""
    for seed in range(20):
        log = filled()
        log.sync_now()
        log.recovery_point = 0
        if by_opening:
            log = opened_at(log, 0, log_start=100)
        else:
            log.begin_anew(100)
        assert log.recovery_point == 100
        log.disk.power_cut(Random(seed))
        again = opened_at(log, 100, log_start=0)
        assert (again.log_start_offset, again.end_offset) == (100, 100)


def opened_at(log: PartitionLog, point: int, *, log_start: int) -> PartitionLog:
    """Opened again, by these checkpoints."""
    return PartitionLog.open_folder(
        log.disk, PATH, log.config, recovery_point=point, log_start_offset=log_start, clean=False,
        machine_lived=False, now_ms=0,
    )  # fmt: skip


def test_what_is_taken_back_is_forgotten_of_its_producer_too():
    log = filled(segment_bytes=1 << 20)
    before = answers(log)
    log.begin_epoch(5)
    log.disk.foreign = log.disk.capacity - log.disk.used()
    stage(log, three(10), 5, 0)
    big = bytearray(build_batch([NewRecord(0, None, bytes(3 * PAGE))], producer_id=2,
                                producer_epoch=0, base_sequence=0))  # fmt: skip
    stage(log, big, 5, 0)
    with pytest.raises(DiskFull):
        log.commit()
    log.take_back(0)
    after = answers(log)
    assert after.pop("epochs") != before.pop("epochs"), "who leads goes on leading"
    after.pop("epoch ends"), before.pop("epoch ends")
    assert after == before
    assert log.producers.check(read_header(three(10))) == -1


def test_a_refused_cut_is_final_and_serves_no_more_appends():
    for part, kind in ((".log", "truncate"), (".log", "sync"), (".log", "unlink")):
        log = filled()
        log.disk.refusing[part, kind] = EIO
        with pytest.raises(StorageFailed):
            log.truncate_to(4, 0)
        log.disk.refusing.clear()
        for call in (log.commit, lambda log=log: log.truncate_to(3, 0), log.sync_now):
            with pytest.raises(StorageFailed):
                call()
        log.let_go()
        assert log.disk.open_files == 0


# What a follower refuses --------------------------------------------------------------------------


def led(*batches: tuple[int, int]) -> bytes:
    """Batches of three records at these offsets, of these epochs."""
    out = b""
    for at, epoch in batches:
        batch = three(0)
        batch[0:8] = at.to_bytes(8, "big")
        batch[12:16] = epoch.to_bytes(4, "big", signed=True)
        out += batch
    return out


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (led((30, 2), (31, 2)), OFFSET_OUT_OF_RANGE, "offset 31 lies before the log end 33"),
        (led((29, 2)), OFFSET_OUT_OF_RANGE, "offset 29 lies before the log end 30"),
        (led((30, 1)), FENCED_LEADER_EPOCH, "leader epoch 1, before it came 2"),
        (led((30, 3), (33, 2)), FENCED_LEADER_EPOCH, "leader epoch 2, before it came 3"),
        (led((30, 2))[:-1] + b"?", CORRUPT_MESSAGE, "CRC32C of the batch at offset 30"),
        (led((30, 2)) + bytes(61), CORRUPT_MESSAGE, "no batch of format 2"),
        (led((30, 2), (40, 10)), CORRUPT_MESSAGE, "epoch 10, and its leader is in epoch 9"),
        (led((30, -1)), CORRUPT_MESSAGE, "leader epoch -1"),
    ],
)
def test_what_would_go_backwards_or_is_damaged_is_refused_whole(data, code, text):
    log = filled()
    before = answers(log)
    with pytest.raises(PeerError, match=text) as refused:
        log.follow(memoryview(data), 0, 9)
    assert refused.value.code == code
    assert not log.has_unwritten and answers(log) == before


def test_a_follower_has_its_leader_s_bytes_epochs_and_producers():
    leader = filled()
    follower = new_log(message_timestamp_type="LogAppendTime")  # the leader has stamped them
    data = b"".join(stored(leader))
    while follower.end_offset < 30:
        rest = data[follower.size :]
        assert follower.follow(memoryview(rest[:2000]), 5, 2) > 0
        follower.commit()
    assert stored(follower) == stored(leader)
    assert (follower.epochs.epochs, follower.epochs.starts) == ([0, 1, 2], [0, 12, 24])
    assert producer_view(follower.producers) == producer_view(leader.producers)
    assert [s.base for s in follower.segments] == [s.base for s in leader.segments]


def test_an_offset_in_a_gap_is_found_in_the_batch_behind_it():
    """And what ends before a high watermark in a gap is served."""
    log = filled()
    log.follow(memoryview(led((40, 2), (50, 2))), 0, 9)
    log.commit()
    size = len(three(0))
    for offset in range(30, 41):
        base, position, _, first = log.locate(offset, 1, 53)
        assert (log.active_base, log.active_size - 2 * size, size) == (base, position, first)
    assert log.locate(40, 1 << 20, 47)[2] == size
    assert log.locate(41, 1 << 20, 43)[2] == size
    assert log.locate(30, 1 << 20, 40) is None
    far = led((1 << 40, 3))
    log.follow(memoryview(far), 0, 9)  # a relative offset has 32 bits
    log.commit()
    assert log.active_base == 1 << 40 and len(stored(log)) == 13


# The power goes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fate", "compact"),
    [("process", True), ("process", False), ("least", False), ("chance", False)],
)
@pytest.mark.parametrize("offset", [2, 13, 27])
def test_a_crash_at_any_step_leaves_a_beginning_of_what_was_and_nothing_comes_back(
    fate, offset, compact
):
    """The recovery point was made lower before. What is appended after the cut is there in full, or
    the old log as far as it was; never one behind the other."""
    kept = offset // 3 * 3
    step = 0
    done = False
    while not done:
        step += 1
        disk = SimDisk(Random(step))
        settings = LogConfig(
            segment_bytes=2500, index_interval_bytes=300, retention_ms=-1, compact=compact
        )
        log = PartitionLog.create(disk, PATH, TOPIC_ID, settings, now_ms=0)
        for n in range(10):
            stage(log, three(n), 0, 0)
            log.commit()
        log.sync_now()
        old = stored(log)
        disk.crash_at = disk.steps + step
        new: list[bytes] = []
        synced = 0
        log.recovery_point = kept
        try:
            assert log.truncate_to(offset, 0) == kept
            for n in range(kept // 3, 14):
                batch = three(n)
                batch[-1:] = b"!"
                batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
                log.stage(memoryview(batch), read_header(batch), 1, 0)
                new.append(bytes(batch))
                log.commit()
                if n == 11:
                    log.sync_now()
                    synced = len(new)
            done = True
        except PowerCut:
            pass
        if fate == "process":
            disk.process_death()
        else:
            disk.power_cut(Least() if fate == "least" else Random(step))
        log = PartitionLog.open_folder(
            disk, PATH, settings, recovery_point=kept, log_start_offset=0, clean=False,
            machine_lived=fate == "process", now_ms=0,
        )  # fmt: skip
        found = stored(log)
        assert found[: kept // 3] == old[: kept // 3]
        behind = found[kept // 3 :]
        assert len(behind) >= synced
        old_rest = old[kept // 3 :]
        assert behind == new[: len(behind)] or behind == old_rest[: len(behind)], step
        assert log.producers.producers[1].next_sequence == 3 * len(found) if found else True
        log.close()
        assert disk.open_files == 0
    assert step > 8


def test_a_cut_of_an_opening_leaves_no_hole_when_it_is_cut_short():
    """In a compacted log a hole is nothing to be afraid of: none must be made."""
    settings = LogConfig(
        segment_bytes=1300, index_interval_bytes=300, retention_ms=-1, compact=True
    )
    for step in range(1, 30):
        disk = SimDisk(Random(step))
        log = PartitionLog.create(disk, PATH, TOPIC_ID, settings, now_ms=0)
        for n in range(10):
            stage(log, three(n), 0, 0)
            log.commit()
        whole = stored(log)
        log.close()
        assert len(log.segments) > 3
        node = disk.root.names["t-0"].names[f"{log.segments[1].base:020d}.log"]
        node.data[-1] ^= 1
        node.synced = bytes(node.data)
        opening = {"recovery_point": 0, "log_start_offset": 0, "clean": False, "now_ms": 0}
        disk.crash_at = disk.steps + step
        with suppress(PowerCut):
            PartitionLog.open_folder(disk, PATH, settings, machine_lived=False, **opening)
        disk.power_cut(Random(step))
        found = stored(
            PartitionLog.open_folder(disk, PATH, settings, machine_lived=False, **opening)
        )
        assert found == whole[: len(found)]
        assert len(found) < len(whole)


@pytest.mark.parametrize("newer", [True, False])
def test_a_journal_does_not_bring_back_what_was_cut(newer):
    """It still has the end of the log as it was: of the leader epoch before."""
    log = filled()
    tail = Tail(TOPIC_ID, 0, 24, b"".join(stored(log)[8:]))
    assert log.truncate_to(24, 0) == 24
    if newer:
        stage(log, three(8), 3, 0)
        log.commit()
    log.let_go()
    log = PartitionLog.open_folder(
        log.disk, PATH, log.config, recovery_point=0, log_start_offset=0, clean=False,
        machine_lived=True, now_ms=0, continuation=Continuation([tail]),
    )  # fmt: skip
    assert log.end_offset == (27 if newer else 30), "what nothing contradicts was acknowledged"
