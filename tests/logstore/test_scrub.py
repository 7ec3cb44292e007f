"""Every damage of a log's folder is found where it is; a sound one, however written, has none."""

import pytest
from sim.disk import SimDisk
from twin import TOPIC_ID, marker, stage, transactional

from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.logstore.scrub import (
    ANY,
    DERIVED,
    HOLE,
    RECORDS,
    TAIL,
    Damage,
    Looked,
    ScrubbedLog,
    scrub,
)
from appliance.wire.batch import NewRecord, build_batch, read_header

FOLDER = "/t-0"
ORDERLY = ScrubbedLog(orderly=True, gaps=False)


def batch(number, size=300):
    records = [NewRecord(1000 + number, b"k", b"x" * size), NewRecord(1000 + number, b"l", b"y")]
    return bytearray(
        build_batch(records, producer_id=7, producer_epoch=0, base_sequence=2 * number)
    )


def closed(batches=20, **settings):
    """A log of two records in a batch, several batches in a segment, after an orderly end."""
    config = LogConfig(segment_bytes=2000, index_interval_bytes=0, **settings)
    log = PartitionLog.create(SimDisk(), FOLDER, TOPIC_ID, config, now_ms=0)
    for number in range(batches):
        stage(log, batch(number), number // 8, 0)
        log.commit()
    log.close()
    return log


def found(log, known=ORDERLY):
    told = list(scrub(log.disk, FOLDER, known))
    sizes = [log.disk.size(f"{FOLDER}/{n}") for n in log.disk.listdir(FOLDER) if n.endswith(".log")]
    looked = sum(one.bytes for one in told if isinstance(one, Looked))
    assert looked == sum(sizes) or (looked < sum(sizes) and known.end != ANY)
    return [one for one in told if isinstance(one, Damage)]


def named(log, suffix):
    return [n for n in log.disk.listdir(FOLDER) if n.endswith(suffix)]


def batches_of(log, name):
    """Position and header of each batch."""
    data = content(log, name)
    at = 0
    while at < len(data):
        header = read_header(data, at)
        yield at, header
        at += header.size


def content(log, name):
    return log.disk.open_file(f"{FOLDER}/{name}").pread(1 << 30, 0)


def write(log, name, data, position):
    log.disk.open_file(f"{FOLDER}/{name}", write=True).pwritev([data], position)


def test_a_sound_log_has_no_damage_however_it_is_read():
    log = closed()
    assert len(named(log, ".log")) > 3 and found(log) == []
    assert found(log, ScrubbedLog(gaps=False)) == []
    assert found(log, ScrubbedLog(end=13, gaps=False)) == []
    assert found(closed(0)) == []


def test_an_empty_log_that_is_served_has_no_damage():
    assert found(closed(0), ScrubbedLog(end=0, gaps=False)) == []
    assert found(closed(), ScrubbedLog(end=0, recovery_point=40, gaps=False)) == []


def test_a_flipped_byte_is_told_with_its_place_and_the_offsets_that_are_lost():
    log = closed()
    name = named(log, ".log")[1]
    at, header = list(batches_of(log, name))[2]
    write(log, name, b"\xff", at + 100)
    [one] = found(log)
    assert (one.path, one.position, one.kind) == (f"{FOLDER}/{name}", at, RECORDS)
    assert (one.first, one.last) == (header.base_offset, header.base_offset + 1)
    assert one.behind == at + header.size and "CRC32C" in one.problem


@pytest.mark.parametrize("byte", [8, 9, 10, 11, 16], ids=lambda at: f"byte {at} of the header")
def test_behind_a_length_that_is_not_to_be_believed_the_next_sound_batch_is_found(byte):
    log = closed()
    name = named(log, ".log")[1]
    (at, header), (behind, _) = list(batches_of(log, name))[1:3]
    write(log, name, bytes((content(log, name)[at + byte] ^ 0x41,)), at + byte)
    [one] = found(log)
    assert (one.position, one.behind) == (at, behind)
    assert (one.first, one.last) == (header.base_offset, header.base_offset + 1)


def test_a_batch_inside_a_record_is_not_taken_for_one_of_the_log():
    config = LogConfig(segment_bytes=1 << 20, index_interval_bytes=0)
    log = PartitionLog.create(SimDisk(), FOLDER, TOPIC_ID, config, now_ms=0)
    inner = bytearray(build_batch([NewRecord(1, b"k", b"forged")]))
    inner[:8] = (3).to_bytes(8, "big")
    for value in (b"a", bytes(inner), b"b", b"c"):
        stage(log, bytearray(build_batch([NewRecord(1, b"k", value)])), 0, 0)
        log.commit()
    log.close()
    [name] = named(log, ".log")
    (_, _), (at, _), (behind, _), _ = batches_of(log, name)
    write(log, name, b"\x7f", at + 8)
    [one] = found(log)
    assert (one.position, one.behind, one.first, one.last) == (at, behind, 1, 1)


def test_zeros_to_the_end_of_a_segment_cost_what_it_had():
    log = closed()
    first, second = named(log, ".log")[:2]
    at, header = list(batches_of(log, first))[3]
    write(log, first, bytes(log.disk.size(f"{FOLDER}/{first}") - at), at)
    [one] = found(log)
    assert (one.first, one.last) == (header.base_offset, int(second[:20]) - 1)
    assert one.behind == log.disk.size(f"{FOLDER}/{first}")


def test_a_torn_end_is_a_tail_only_where_nothing_says_that_it_was_written():
    log = closed()
    name = named(log, ".log")[-1]
    *_, (at, header) = batches_of(log, name)
    log.disk.open_file(f"{FOLDER}/{name}", write=True).truncate(at + header.size - 1)
    base = header.base_offset
    for known, kind in (
        (ScrubbedLog(recovery_point=base, gaps=False), TAIL),
        (ScrubbedLog(recovery_point=base + 2, gaps=False), RECORDS),
        (ScrubbedLog(end=base + 2, gaps=False), RECORDS),
        (ORDERLY, RECORDS),
    ):
        [one] = found(log, known)
        assert (one.kind, one.position, one.first) == (kind, at, base)
    assert found(log, ScrubbedLog(end=base, gaps=False)) == [], "somebody writes it just now"


def test_a_log_that_ends_early_on_a_batch_is_seen_by_what_was_on_the_disk():
    log = closed()
    name = named(log, ".log")[-1]
    *_, (at, header) = batches_of(log, name)
    log.disk.open_file(f"{FOLDER}/{name}", write=True).truncate(at)
    known = ScrubbedLog(recovery_point=header.base_offset + 2, gaps=False)
    [one] = found(log, known)
    assert (one.kind, one.first, one.last) == (RECORDS, header.base_offset, header.base_offset + 1)


def test_a_missing_segment_is_a_hole_but_not_in_a_log_that_is_compacted():
    log = closed()
    _, second, third, *_ = named(log, ".log")
    log.disk.unlink(f"{FOLDER}/{second}")
    [one] = found(log)
    assert (one.kind, one.first, one.last) == (HOLE, int(second[:20]), int(third[:20]) - 1)
    assert found(log, ScrubbedLog(orderly=True, gaps=True)) == []


def test_batches_that_the_next_segment_has_too_are_told_once_and_cost_nothing():
    log = closed()
    first, second, *_ = named(log, ".log")
    size = log.disk.size(f"{FOLDER}/{first}")
    write(log, first, content(log, second), size)
    [one] = found(log)
    assert (one.position, one.first, one.last) == (size, -1, -1)


def test_indexes_that_lead_astray_are_told_and_are_no_damage_of_records():
    log = closed()
    name = named(log, ".index")[0]
    entry = content(log, name)[8:16]
    wrong = entry[:4] + (int.from_bytes(entry[4:], "big") + 1).to_bytes(4, "big")
    write(log, name, wrong, 8)
    [one] = found(log)
    assert (one.path, one.position, one.kind) == (f"{FOLDER}/{name}", 8, DERIVED)
    write(log, name, entry, 8)
    name = named(log, ".timeindex")[0]
    write(log, name, (5).to_bytes(8, "big"), 0)
    [one] = found(log)
    assert (one.path, one.kind) == (f"{FOLDER}/{name}", DERIVED)


def test_snapshots_and_epochs_are_held_against_the_log():
    log = closed()
    [name] = named(log, ".snapshot")[-1:]
    write(log, name, b"\xff", 20)
    [one] = found(log)
    assert (one.path, one.kind) == (f"{FOLDER}/{name}", DERIVED)
    log = closed()
    write(log, "leader-epoch-checkpoint", b"0\n3\n0 0\n1 12\n2 32\n", 0)
    [one] = found(log)
    assert one.path.endswith("leader-epoch-checkpoint") and one.first == 16


def test_an_aborted_transaction_whose_marker_is_not_there_is_told():
    log = PartitionLog.create(SimDisk(), FOLDER, TOPIC_ID, LogConfig(segment_bytes=2000), now_ms=0)
    stage(log, transactional(batch(0)), 0, 0)
    stage(log, marker(7, 0, committed=False), 0, 0)
    log.commit()
    for number in range(1, 12):
        stage(log, batch(number), 0, 0)
        log.commit()
    log.close()
    assert found(log) == []
    name = named(log, ".txnindex")[0]
    write(log, name, (1).to_bytes(8, "big"), 18)
    [one] = found(log)
    assert one.path.endswith(name) and "no marker at offset 1" in one.problem
