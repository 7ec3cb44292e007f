"""Which offsets no segment of a log has, found without reading the log."""

import pytest
from sim.disk import SimDisk
from test_log_segments import append, bases
from twin import TOPIC_ID

from appliance.config.log_config import LogConfig
from appliance.logstore import offset_gaps
from appliance.logstore.log import PartitionLog


def closed_log(batches=40, **settings):
    """Two batches in a segment."""
    config = LogConfig(segment_bytes=350, **settings)
    log = PartitionLog.create(SimDisk(), "/t-0", TOPIC_ID, config, now_ms=0)
    for _ in range(batches):
        append(log)
    log.close()
    return log


def reopened(log, log_start_offset=0):
    return PartitionLog.open_folder(
        log.disk,
        log.path,
        log.config,
        recovery_point=log.end_offset,
        log_start_offset=log_start_offset,
        clean=True,
        machine_lived=False,
        now_ms=0,
    )


def remove(log, *first_offsets):
    for base in first_offsets:
        for suffix in (".log", ".index", ".timeindex"):
            log.disk.unlink(f"{log.path}/{base:020d}{suffix}")


@pytest.mark.parametrize("interval", [0, 4096], ids=["with entries", "without entries"])
def test_what_a_removed_segment_had_is_named(interval):
    log = closed_log(index_interval_bytes=interval)
    assert offset_gaps.offsets(reopened(log)) == []
    remove(log, 4, 10, 12, 36)
    assert offset_gaps.offsets(reopened(log)) == [(4, 5), (10, 13), (36, 37)]


def test_what_lies_below_the_log_start_is_not_missed():
    log = closed_log()
    remove(log, 4, 10)
    assert offset_gaps.offsets(reopened(log, 7)) == [(10, 11)]
    assert offset_gaps.offsets(reopened(log, 11)) == [(11, 11)]
    assert offset_gaps.offsets(reopened(log, 12)) == []
    remove(log, 0)
    assert offset_gaps.offsets(reopened(log)) == [(4, 5), (10, 11)], (
        "the oldest go first, by the rules"
    )


def test_a_compacted_log_has_holes_by_nature():
    log = closed_log(compact=True)
    remove(log, 4)
    assert offset_gaps.offsets(reopened(log)) == []


def test_an_index_that_names_no_batch_is_not_believed():
    log = closed_log(index_interval_bytes=0)
    remove(log, 4)
    index = log.disk.open_file(f"{log.path}/{2:020d}.index", write=True)
    for entry in (bytes(8), b"\0\0\0\1\0\0\0\7", b"\0\0\0\1\x7f\0\0\0", b"\xff" * 8):
        index.truncate(0)
        index.pwritev([entry], 0)
        assert offset_gaps.offsets(reopened(log)) == [(4, 5)]
    log.disk.unlink(f"{log.path}/{2:020d}.index")
    assert offset_gaps.offsets(reopened(log)) == [(4, 5)]


def test_nothing_is_said_behind_a_segment_whose_end_is_not_known():
    log = closed_log()
    remove(log, 4)
    log.disk.open_file(f"{log.path}/{2:020d}.log", write=True).pwritev([bytes(20)], 0)
    assert offset_gaps.offsets(reopened(log)) == []


def test_a_big_segment_costs_few_reads_and_one_without_index_is_not_read_through(monkeypatch):
    monkeypatch.setattr(offset_gaps, "_READ", 400)
    monkeypatch.setattr(offset_gaps, "_READS", 4)
    log = PartitionLog.create(
        SimDisk(),
        "/t-0",
        TOPIC_ID,
        LogConfig(segment_bytes=20_000, index_interval_bytes=1000),
        now_ms=0,
    )
    for _ in range(400):
        append(log)
    log.close()
    second, third = bases(log)[1:3]
    remove(log, second)
    assert offset_gaps.offsets(reopened(log)) == [(second, third - 1)]
    log.disk.unlink(f"{log.path}/{0:020d}.index")
    again = reopened(log)
    reads = []
    pread = type(again.segments[0].reader(log.disk)).preadinto
    monkeypatch.setattr(
        type(again.segments[0].file),
        "preadinto",
        lambda *args: reads.append(args[2]) or pread(*args),
    )
    assert offset_gaps.offsets(again) == []
    assert len([at for at in reads if at]) < 4 * len(again.segments)
