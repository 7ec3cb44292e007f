"""Compaction against a dumb twin: the newest record of every key stays, with its offset and time;
producers go on where they were; what is opened again is the same."""

import pytest
from compacting import begin, clean, read, survivors
from hypothesis import given, settings
from hypothesis import strategies as st
from sim.disk import SimDisk
from twin import TOPIC_ID, aborted, marker, stage, stored, with_producer

from appliance.base.errors import StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore.cleanable import measure_dirty
from appliance.logstore.compaction import Compactor
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import NewRecord, build_batch, read_header
from appliance.wire.batch_header import DELETE_HORIZON_BIT

CONFIG = LogConfig(
    segment_bytes=2000,
    index_interval_bytes=200,
    compact=True,
    delete=False,
    delete_retention_ms=100,
)
PATH = "/t-0"


def new_log(config=CONFIG, disk=None) -> PartitionLog:
    return PartitionLog.create(disk or SimDisk(), PATH, TOPIC_ID, config, now_ms=0)


def append(log: PartitionLog, records, *, codec=0, producer=None, now_ms=0, timestamp=1000):
    batch = bytearray(
        build_batch(
            [NewRecord(timestamp + n, k, v) for n, (k, v) in enumerate(records)], codec=codec
        )
    )
    if producer is not None:
        with_producer(batch, *producer)
    log.stage(memoryview(batch), read_header(batch), 0, now_ms)
    log.commit()
    log.sync_now()


def reopened(log: PartitionLog, *, clean: bool) -> PartitionLog:
    point = log.recovery_point
    if clean:
        log.close()
    return PartitionLog.open_folder(
        log.disk,
        PATH,
        log.config,
        recovery_point=point,
        log_start_offset=log.log_start_offset,
        clean=clean,
        machine_lived=False,
        now_ms=0,
    )


keys = st.sampled_from([b"a", b"b", b"c", b"d" * 200, b"", b"e" * 33])
values = st.one_of(st.none(), st.binary(max_size=300))
batches = st.tuples(st.lists(st.tuples(keys, values), min_size=1, max_size=8), st.integers(0, 4))
steps = st.lists(
    st.one_of(batches, st.just("clean"), st.just("reopen"), st.just("roll")), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(steps=steps, memory=st.sampled_from([1 << 20, 600]))
def test_it_keeps_what_a_dumb_twin_keeps(steps, memory):
    log = new_log()
    twin, times, horizons = [], {}, {}
    cleaned_to = now_ms = 0
    for step in steps:
        now_ms += 20
        if step == "clean":
            first, before = begin(log, cleaned_to, now_ms).first_dirty, cleaned_to
            cleaned_to = clean(log, cleaned_to, now_ms, memory)
            assert cleaned_to >= before
            twin = survivors(twin, first, cleaned_to, horizons, now_ms)
            for offset, _, value in twin:
                if value is None and offset < cleaned_to:
                    horizons.setdefault(offset, now_ms + 100)
            # a segment that the cleaning touched gets horizons in all of it
            for batch in stored(log):
                header = read_header(batch)
                if header.attributes & DELETE_HORIZON_BIT:
                    for offset, _, value, _ in read([batch]):
                        if value is None:
                            horizons.setdefault(offset, header.base_timestamp)
        elif step == "reopen":
            log = reopened(log, clean=len(twin) % 2 == 0)
        elif step == "roll":
            log.roll(now_ms)
            log.sync_now()
        else:
            records, codec = step
            base = log.end_offset
            append(log, records, codec=codec)
            twin += [(base + n, k, v) for n, (k, v) in enumerate(records)]
            times |= {base + n: 1000 + n for n in range(len(records))}
        found = read(stored(log))
        assert [entry[:3] for entry in found] == twin
        assert all(times[offset] == time for offset, _, _, time in found)
    for offset in range(log.end_offset):  # every read position gives the next record that is left
        left = [entry for entry in read(stored(log, offset)) if entry[0] >= offset]
        assert [entry[:3] for entry in left] == [entry for entry in twin if entry[0] >= offset]


def test_segments_become_one_and_the_active_one_is_left_alone():
    log = new_log()
    for n in range(60):
        append(log, [(b"k%d" % (n % 3), b"v" * 150)])
    segments = len(log.segments)
    active = log.active_base
    assert segments > 4
    assert clean(log, 0, 0) == active
    assert log.layout == segments - 1
    clean(log, 0, 0)  # small ones become one
    assert [segment.base for segment in log.segments] == [0, active]
    assert log.layout == segments
    assert log.size == sum(len(batch) for batch in stored(log))
    assert [record[0] for record in read(stored(log)) if record[0] < active] == [
        active - 3,
        active - 2,
        active - 1,
    ]
    assert clean(log, active, 0) == active, "nothing is dirty"


def test_a_tombstone_stays_until_its_horizon_and_goes_with_the_next_cleaning():
    log = new_log()
    append(log, [(b"k", b"v"), (b"other", b"v")])
    append(log, [(b"k", None)])
    log.roll(0)
    log.sync_now()
    end = clean(log, 0, 1000)
    assert [record[:3] for record in read(stored(log))] == [(1, b"other", b"v"), (2, b"k", None)]
    horizon = read_header(stored(log)[1])
    assert horizon.attributes & DELETE_HORIZON_BIT
    assert horizon.base_timestamp == 1100
    assert clean(log, 0, 1099) == end
    assert len(read(stored(log))) == 2
    clean(log, 0, 1100)
    assert [record[:3] for record in read(stored(log))] == [(1, b"other", b"v")]
    assert read_header(stored(log)[-1]).last_offset == end - 1, "the end of a cleaning stays"


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_keeps_its_frame_and_its_codec(codec):
    log = new_log()
    append(log, [(b"a", b"1" * 50), (b"b", b"2" * 50), (b"c", b"3" * 50)], codec=codec)
    append(log, [(b"a", b"4"), (b"c", b"5")], codec=codec)
    log.roll(0)
    log.sync_now()
    before = read_header(stored(log)[0])
    clean(log, 0, 0)
    after = read_header(stored(log)[0])
    assert after.codec == codec
    assert (after.base_offset, after.last_offset) == (0, 2)
    assert after.record_count == 1
    assert after.max_timestamp == 1001 < before.max_timestamp
    assert log.offset_for_timestamp(0, log.end_offset) == (1001, 1, 0)


def test_a_producer_goes_on_after_its_records_are_gone():
    log = new_log()
    append(log, [(b"a", b"1"), (b"b", b"1")], producer=(7, 3, 0))
    append(log, [(b"a", b"2"), (b"b", b"2")], producer=(8, 0, 0))
    append(log, [(b"a", b"3"), (b"b", b"3")])
    log.roll(0)
    log.sync_now()
    clean(log, 0, 0)
    headers = [read_header(batch) for batch in stored(log)]
    assert [header.record_count for header in headers] == [0, 0, 2]
    for name in log.disk.listdir(PATH):
        if name.endswith(".snapshot"):
            log.disk.unlink(f"{PATH}/{name}")
    log = reopened(log, clean=False)
    for producer_id, epoch in ((7, 3), (8, 0)):
        batch = with_producer(
            bytearray(build_batch([NewRecord(0, b"a", b"x")])), producer_id, epoch, 2
        )
        assert log.producers.check(read_header(batch)) == -1
    del log.producers.producers[7]  # it expired
    clean(log, 0, 0)
    assert [read_header(batch).producer_id for batch in stored(log)] == [8, -1]


def transaction(log: PartitionLog, producer_id: int, sequence: int, records, commit: bool) -> None:
    batch = build_batch(
        [NewRecord(1000, k, v) for k, v in records],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    key = b"\0\0" + (1 if commit else 0).to_bytes(2, "big")
    marker = build_batch(
        [NewRecord(1000, key, bytes(6))],
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    for made in (batch, marker):
        data = bytearray(made)
        log.stage(memoryview(data), read_header(data), 0, 0)
    log.commit()
    log.sync_now()


def test_what_was_aborted_replaces_nothing_and_markers_stay_their_time():
    log = new_log()
    transaction(log, 5, 0, [(b"a", b"good")], True)
    transaction(log, 5, 1, [(b"a", b"taken back")], False)
    transaction(log, 6, 0, [(b"z", b"1")], True)
    append(log, [(b"z", b"2")])
    log.roll(0)
    log.sync_now()
    clean(log, 0, 1000)
    found = [record for record in read(stored(log)) if len(record[1]) != 4]
    assert [record[:3] for record in found] == [(0, b"a", b"good"), (6, b"z", b"2")]
    markers = [read_header(batch) for batch in stored(log) if read_header(batch).is_control]
    assert len(markers) == 3
    log.producers.producers.clear()  # expired: even the empty batches of the last ones go
    clean(log, 0, 1000)
    clean(log, 0, 1000)  # nothing is left of 5's second and of 6's: their markers' time begins
    clean(log, 0, 1050)
    markers = [read_header(batch) for batch in stored(log) if read_header(batch).is_control]
    assert [bool(marker.attributes & DELETE_HORIZON_BIT) for marker in markers] == [
        False,
        True,
        True,
    ]
    clean(log, 0, 1100)
    markers = [read_header(batch) for batch in stored(log) if read_header(batch).record_count]
    assert [marker.base_offset for marker in markers if marker.is_control] == [1]


def test_what_is_aborted_behind_the_cleaned_part_replaces_nothing():
    log = new_log()
    append(log, [(b"a", b"good")])
    batch = build_batch(
        [NewRecord(1000, b"a", b"taken back")],
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    stage(log, bytearray(batch), 0, 0)
    log.roll(0)
    stage(log, marker(5, 0, committed=False), 0, 0)
    log.commit()
    log.sync_now()
    assert clean(log, 0, 0) == 2
    assert [record[:3] for record in read(stored(log))][:-1] == [(0, b"a", b"good")]
    assert aborted(log) == [(5, 1, 2, 3)]


@pytest.mark.parametrize("committed", [False, True])
def test_an_abort_is_told_while_something_of_it_is_left(committed):
    log = new_log()
    transaction(log, 5, 0, [(b"a", b"x")], committed)
    for n in range(3):
        append(log, [(b"z", b"%d" % n)])
    log.roll(0)
    log.sync_now()
    told = [] if committed else [(5, 0, 1, 2)]
    assert aborted(log) == told
    clean(log, 0, 0)
    assert aborted(log) == told, "the producer's sequence is in an empty batch"
    log = reopened(log, clean=False)
    assert aborted(log) == told
    assert log.producers.open == {}
    log.producers.producers.clear()
    clean(log, 0, 0)
    clean(log, 0, 0)
    assert aborted(log) == []
    for name in log.disk.listdir(PATH):
        if name.endswith(".snapshot"):
            log.disk.unlink(f"{PATH}/{name}")
    assert reopened(log, clean=False).producers.open == {}, "the marker outlives its batches"


def test_what_is_too_young_is_left_and_what_waited_too_long_is_due():
    lagging = LogConfig(
        segment_bytes=2000,
        compact=True,
        min_compaction_lag_ms=100,
        max_compaction_lag_ms=500,
    )
    log = new_log(lagging)
    for n in range(40):
        append(log, [(b"k", b"v" * 150)], timestamp=1000 + n * 10)
    half = measure_dirty(log, 0, log.end_offset, 1300)
    assert 0 < half.upper < log.active_base
    assert not half.late_ms
    whole = measure_dirty(log, 0, log.end_offset, 9000)
    assert whole.upper == log.active_base
    assert whole.late_ms == 9000 - 500 - 1000
    assert measure_dirty(log, 0, 12, 9000).upper <= 12, "not above the high watermark"


def test_records_of_an_idle_log_leave_the_active_segment_when_their_lag_is_over():
    lagging = LogConfig(segment_bytes=2000, compact=True, delete=False, max_compaction_lag_ms=500)
    log = new_log(lagging)
    append(log, [(b"k", b"v")], timestamp=1000)
    append(log, [(b"k", b"w")], timestamp=1001)
    log.retain(1500, log.end_offset)
    assert log.active_base == 0, "the lag is not over yet"
    log.retain(1501, log.end_offset)
    log.sync_now()
    assert log.active_base == 2
    found = measure_dirty(log, 0, log.end_offset, 1501)
    assert (found.upper, found.late_ms) == (2, 1)
    clean(log, 0, 1501)
    assert [entry[:3] for entry in read(stored(log))] == [(1, b"k", b"w")]
    log.retain(9000, log.end_offset)
    assert log.active_base == 2, "an empty segment waits for nothing"


def test_without_a_lag_the_active_segment_of_an_idle_log_stays():
    log = new_log(LogConfig(segment_bytes=2000, compact=True, delete=False))
    append(log, [(b"k", b"v")], timestamp=1000)
    log.retain(1 << 60, log.end_offset)
    assert log.active_base == 0


def test_records_without_a_time_are_as_young_as_their_last_write():
    lagging = LogConfig(segment_bytes=2000, compact=True, min_compaction_lag_ms=100)
    log = new_log(lagging)
    log.disk.now_ms = 5000
    for _ in range(40):
        append(log, [(b"k", b"v" * 150)], timestamp=-1)
    assert measure_dirty(log, 0, log.end_offset, 5099).segments == []
    assert measure_dirty(log, 0, log.end_offset, 5100).upper == log.active_base


def test_damage_is_reported_and_changes_nothing():
    log = new_log()
    for _ in range(40):
        append(log, [(b"k", b"v" * 150)])
    file = log.disk.open_file(f"{PATH}/{0:020d}.log", write=True)
    file.pwritev([b"?"], 100)
    file.close()
    job = Compactor(log.disk, begin(log, 0, 0), lambda _: None)
    with pytest.raises(StorageFailed, match="CRC32C"):
        job.read_keys()
