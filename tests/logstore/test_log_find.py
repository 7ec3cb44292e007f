"""Offsets and timestamps are found as a reader of the whole log would find them."""

from itertools import accumulate
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim.disk import SimDisk
from twin import TOPIC_ID, header_of, small_batch, stage, stored

from appliance.base.errors import OFFSET_OUT_OF_RANGE, PeerError
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import NewRecord, build_batch, iter_records, read_header
from tests.differential.scripts.produced_heads import headed

CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=300)


def filled(seed: int, count: int, config: LogConfig = CONFIG) -> tuple[PartitionLog, list[bytes]]:
    rng = Random(seed)
    log = PartitionLog.create(SimDisk(rng), "/t-0", TOPIC_ID, config, now_ms=0)
    batches = []
    for _ in range(count):
        batches.append(stage(log, small_batch(rng, rng.randint(0, 5000)), 0, 0))
        if rng.random() < 0.5:
            log.commit()
    log.commit()
    return log, batches


def reopened(log: PartitionLog) -> PartitionLog:
    log.close()
    return PartitionLog.open_folder(
        log.disk,
        log.path,
        log.config,
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
        clean=True,
        machine_lived=False,
        now_ms=0,
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.booleans(), st.data())
def test_a_range_begins_with_the_batch_and_ends_below_the_limit(seed, count, again, data):
    log, batches = filled(seed, count)
    if again:
        log = reopened(log)
    headers = [header_of(batch) for batch in batches]
    for _ in range(20):
        limit = data.draw(st.sampled_from([0, *(h.last_offset + 1 for h in headers)]))
        offset = data.draw(st.integers(0, log.end_offset))
        max_bytes = data.draw(st.integers(1, 5000))
        visible = [
            batch
            for batch, header in zip(batches, headers, strict=True)
            if offset <= header.last_offset < limit
        ]
        found = log.locate(offset, max_bytes, limit)
        if not visible:
            assert found is None
            continue
        base, position, length, first = found
        assert first == len(visible[0])
        name = f"/t-0/{base:020d}.log"
        file = log.disk.open_file(name)
        in_segment = file.size() - position
        assert file.pread(length, position) == b"".join(visible)[:length]
        whole = min(sum(map(len, visible)), in_segment)
        ends = [end for end in accumulate(map(len, visible)) if end <= whole]
        assert length in ends, "only whole batches"
        assert length == first or length <= max_bytes
        if length < whole:
            more = ends[ends.index(length) + 1]
            assert more > max_bytes or length >= max_bytes // 2


def test_outside_the_log_is_refused():
    log, _ = filled(1, 10)
    for offset in (-1, log.end_offset + 1):
        with pytest.raises(PeerError) as refused:
            log.locate(offset, 100, log.end_offset)
        assert refused.value.code == OFFSET_OUT_OF_RANGE
    assert log.locate(log.end_offset, 100, log.end_offset) is None
    log.advance_log_start(5)
    with pytest.raises(PeerError):
        log.locate(4, 100, log.end_offset)


def test_the_middle_of_the_limit_s_batch_hides_it():
    log = PartitionLog.create(SimDisk(), "/t-0", TOPIC_ID, CONFIG, now_ms=0)
    batch = bytearray(build_batch([NewRecord(1, None, b"a"), NewRecord(1, None, b"b")]))
    stage(log, batch, 0, 0)
    log.commit()
    assert log.locate(0, 100, 1) is None
    assert log.locate(0, 100, 2) == (0, 0, len(batch), len(batch))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.booleans(), st.integers(-1, 5100))
def test_the_first_record_that_is_not_older(seed, count, again, timestamp):
    log, batches = filled(seed, count)
    if again:
        log = reopened(log)
    records = [record for batch in batches for record in iter_records(batch)]
    limit = header_of(batches[len(batches) // 2]).base_offset
    for end in (log.end_offset, limit):
        wanted = next((r for r in records if r.timestamp >= timestamp and r.offset < end), None)
        found = log.offset_for_timestamp(timestamp, end)
        assert found == (None if wanted is None else (wanted.timestamp, wanted.offset, 0))
    newest = max(record.timestamp for record in records)
    first = next(r for r in records if r.timestamp == newest)
    assert log.max_timestamp() == (newest, first.offset, 0)


def test_a_compressed_batch_is_opened_for_its_timestamps():
    log = PartitionLog.create(SimDisk(), "/t-0", TOPIC_ID, CONFIG, now_ms=0)
    records = [NewRecord(100 + n, None, b"v" * 50) for n in range(10)]
    stage(log, bytearray(build_batch(records, codec=1)), 3, 0)
    log.commit()
    assert log.offset_for_timestamp(104, 10) == (104, 4, 3)
    assert log.offset_for_timestamp(104, 4) is None
    log.advance_log_start(6)
    assert log.offset_for_timestamp(104, 10) == (106, 6, 3)


def test_a_first_record_that_is_not_of_the_base_timestamp_is_found_by_its_own():
    log = PartitionLog.create(SimDisk(), "/t-0", TOPIC_ID, CONFIG, now_ms=0)
    stage(log, bytearray(headed((-7, 0), (2, 1), base=107, newest=109)), 0, 0)
    log.commit()
    assert log.offset_for_timestamp(98, 2) == (100, 0, 0)
    assert log.offset_for_timestamp(101, 2) == (109, 1, 0)


def test_the_newest_of_records_without_a_time_is_the_first():
    log = PartitionLog.create(SimDisk(), "/t-0", TOPIC_ID, CONFIG, now_ms=0)
    assert log.max_timestamp() is None
    stage(log, bytearray(build_batch([NewRecord(-1, None, b"v")] * 2)), 0, 0)
    log.commit()
    assert log.max_timestamp() == (-1, 0, 0)


def test_log_append_time_is_everybody_s_time():
    config = LogConfig(message_timestamp_type="LogAppendTime")
    log = PartitionLog.create(SimDisk(), "/t-0", TOPIC_ID, config, now_ms=0)
    batch = stage(log, small_batch(Random(1), 77), 0, 5000)
    log.commit()
    header = read_header(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == 5000
    assert all(record.timestamp == 5000 for record in iter_records(batch))
    assert log.offset_for_timestamp(4000, log.end_offset) == (5000, 0, 0)
    assert stored(reopened(log)) == [batch]


def test_damaged_indexes_are_built_again():
    log, batches = filled(7, 80)
    log.close()
    disk = log.disk
    for name in disk.listdir("/t-0"):
        if name.endswith(".index"):
            disk._node(f"/t-0/{name}").data[:] = b"\xff" * 8
        if name.endswith(".timeindex"):
            disk.unlink(f"/t-0/{name}")
    again = PartitionLog.open_folder(
        disk,
        "/t-0",
        CONFIG,
        recovery_point=log.recovery_point,
        log_start_offset=0,
        clean=True,
        machine_lived=False,
        now_ms=0,
    )
    assert stored(again) == batches
    assert again.max_timestamp() is not None
    assert disk.size("/t-0/00000000000000000000.timeindex") > 0


def test_few_files_stay_open_however_many_segments_are_read():
    log, batches = filled(9, 400)
    assert len(log.segments) > 20
    log.sync_now()
    assert stored(log) == batches
    assert log.disk.open_files <= 6
