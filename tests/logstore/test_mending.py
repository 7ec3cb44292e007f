"""A damaged log is mended so that all that is sound of it serves, and nothing of it is deleted."""

import pytest
from sim.disk import PowerCut, SimDisk
from test_scrub import FOLDER, batch, batches_of, closed, content, named, write
from twin import TOPIC_ID, marker, stage, transactional, with_producer

from appliance.config.log_config import LogConfig
from appliance.logstore import aborted
from appliance.logstore.log import PartitionLog
from appliance.logstore.repair import carry_out, plan
from appliance.logstore.scrub import HOLE, TAIL, Damage, ScrubbedLog, scrub
from appliance.logstore.unfinished_swaps import finish_swaps
from appliance.wire.batch import read_header

BESIDE = "/t-0.1-stray"
RECORDS = 40


def damages(log, known):
    return [one for one in scrub(log.disk, FOLDER, known) if isinstance(one, Damage)]


def linking(disk):
    def link(old, new):
        disk.change(new, "link")
        folder, name = disk._place(new)
        folder.set(name, disk._node(old))

    return link


def mend(log, written=RECORDS, *, orderly=True, beside=BESIDE):
    """The plan that was carried out, and the log end."""
    known = ScrubbedLog(recovery_point=written, orderly=orderly, gaps=False)
    made = plan(log.disk, FOLDER, damages(log, known), written)
    end = carry_out(log.disk, FOLDER, made, beside, linking(log.disk))
    left = [one for one in damages(log, known._replace(recovery_point=end)) if one.kind != TAIL]
    assert all(one.kind == HOLE for one in left), left
    return made, end


def serves(log, end, *, clean=True):
    """The log opened again, and the offsets that a consumer from the beginning gets."""
    opened = PartitionLog.open_folder(
        log.disk, FOLDER, log.config, recovery_point=end, log_start_offset=0,
        clean=clean, machine_lived=False, now_ms=0,
    )  # fmt: skip
    found, offset = [], 0
    while (place := opened.locate(offset, 1, opened.end_offset)) is not None:
        base, position, length, _ = place
        header = read_header(content(log, f"{base:020d}.log")[position : position + length])
        assert header.last_offset >= offset
        found += range(header.base_offset, header.last_offset + 1)
        offset = header.last_offset + 1
    return opened, found


def missing(*gone, end=RECORDS):
    return [offset for offset in range(end) if offset not in gone]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("number", [0, 2, 4], ids=["first", "middle", "last"])
def test_a_damaged_batch_is_a_hole_that_consumers_get_past(number, clean):
    log = closed()
    name = named(log, ".log")[1]
    before = content(log, name)
    at, header = list(batches_of(log, name))[number]
    write(log, name, b"\xff", at + 100)
    broken = content(log, name)
    made, end = mend(log, orderly=clean)
    lost = header.base_offset, header.last_offset
    assert made.lost == [lost] and end == RECORDS and made.size == len(before) - header.size
    opened, offsets = serves(log, end, clean=clean)
    assert offsets == missing(*lost)
    assert opened.end_offset == RECORDS
    stage(opened, batch(99), 5, 0)
    assert opened.commit() is None and opened.end_offset == RECORDS + 2
    assert log.disk.open_file(f"{BESIDE}/{name}").pread(1 << 20, 0) == broken


def test_two_damages_in_a_segment_leave_what_lies_between():
    log = closed()
    name = named(log, ".log")[1]
    places = list(batches_of(log, name))
    for number in (1, 3):
        write(log, name, b"\xff", places[number][0] + 100)
    made, end = mend(log)
    gone = [places[n][1].base_offset + more for n in (1, 3) for more in (0, 1)]
    assert len(made.runs[int(name[:20])]) == 3
    assert serves(log, end)[1] == missing(*gone)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("which", [0, 1, -1], ids=["oldest", "middle", "newest"])
def test_a_segment_of_which_nothing_is_left_goes_whole(which, clean):
    log = closed()
    names = named(log, ".log")
    name = names[which]
    write(log, name, bytes(log.disk.size(f"{FOLDER}/{name}")), 0)
    first = int(name[:20])
    behind = RECORDS if which == -1 else int(names[which + 1][:20])
    made, end = mend(log, orderly=clean)
    assert made.lost == [(first, behind - 1)]
    opened, offsets = serves(log, end, clean=clean)
    assert offsets == missing(*range(first, behind)) and opened.end_offset == RECORDS


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_of_a_lost_end_are_not_given_again(clean):
    log = closed()
    name = named(log, ".log")[-1]
    at, header = list(batches_of(log, name))[-2]
    log.disk.open_file(f"{FOLDER}/{name}", write=True).truncate(at + 50)
    made, end = mend(log, orderly=clean)
    assert made.lost == [(header.base_offset, RECORDS - 1)] and end == RECORDS
    opened, offsets = serves(log, end, clean=clean)
    assert offsets == missing(*range(header.base_offset, RECORDS))
    assert opened.end_offset == RECORDS


def test_a_torn_end_that_nobody_was_promised_is_left_to_the_start():
    log = closed()
    first, *_, last = named(log, ".log")
    write(log, first, b"\xff", 100)
    *_, (at, header) = batches_of(log, last)
    write(log, last, b"\xff", at + 100)
    made, end = mend(log, header.base_offset, orderly=False)
    assert end == made.tail == header.base_offset
    opened, offsets = serves(log, end, clean=False)
    assert offsets == missing(0, 1, end=end) and opened.cut.offset == end


def test_what_is_made_of_the_records_is_made_again():
    log = closed()
    for name in (named(log, ".index")[0], named(log, ".timeindex")[1]):
        write(log, name, b"\x7f" * 24, 0)
    write(log, named(log, ".snapshot")[-1], b"\xff", 20)
    write(log, "leader-epoch-checkpoint", b"0\n3\n0 0\n1 12\n2 32\n", 0)
    made, end = mend(log)
    assert sorted(made.derived) == sorted(log.disk.listdir(BESIDE)) and made.lost == []
    opened, offsets = serves(log, end)
    assert offsets == missing()
    assert opened.epochs.starts == [0, 16, 32]
    assert opened.producers.producers[7].next_sequence == 2 * 20


def with_transactions():
    """Producer 7 aborts records 0 and 1, and 3 and 4, in two segments."""
    log = PartitionLog.create(SimDisk(), FOLDER, TOPIC_ID, LogConfig(segment_bytes=1500), now_ms=0)
    for number in range(2):
        stage(log, transactional(batch(number)), 0, 0)
        stage(log, marker(7, 0, committed=False), 0, 0)
        for _ in range(4):
            stage(log, with_producer(batch(0), -1, -1, -1), 0, 0)
        log.commit()
    log.close()
    return log


def aborted_of(log):
    return list(aborted.AbortedTransactions(log.disk, FOLDER, 0))


def test_aborted_transactions_stay_aborted_where_their_index_or_their_marker_is_lost():
    log = with_transactions()
    known = aborted_of(log)
    assert len(known) == 2
    name = named(log, ".txnindex")[0]
    write(log, name, (5).to_bytes(8, "big"), 18)
    _, end = mend(log, written=1)
    assert aborted_of(log) == known
    log = with_transactions()
    name = named(log, ".log")[0]
    at, header = next(one for one in batches_of(log, name) if one[1].is_control)
    write(log, name, b"\xff", at + header.size - 1)
    made, end = mend(log, written=1)
    assert made.lost == [(header.base_offset, header.base_offset)]
    assert aborted_of(log) == known
    serves(log, end)


def test_killed_anywhere_a_repair_is_gone_on_with_and_nothing_is_deleted():
    step, whole = 0, False
    while not whole:
        step += 1
        log = closed()
        name = named(log, ".log")[1]
        places = list(batches_of(log, name))
        write(log, name, b"\xff", places[1][0] + 100)
        broken = content(log, name)
        known = ScrubbedLog(recovery_point=RECORDS, orderly=True, gaps=False)
        disk = log.disk
        made = plan(disk, FOLDER, damages(log, known), RECORDS)
        disk.crash_at = disk.steps + step
        try:
            carry_out(disk, FOLDER, made, BESIDE, linking(disk))
            whole = True
        except PowerCut:
            pass
        disk.crash_at = -1
        places_of_it = [f"{folder}/{name}" for folder in (FOLDER, BESIDE)]
        there = [disk.open_file(one).pread(1 << 20, 0) for one in places_of_it if disk.exists(one)]
        assert broken in there
        finish_swaps(disk, FOLDER)
        again = plan(disk, FOLDER, damages(log, known), RECORDS)
        if again is not None:
            carry_out(disk, FOLDER, again, BESIDE + "2", linking(disk))
        lost = places[1][1].base_offset, places[1][1].last_offset
        assert serves(log, RECORDS)[1] == missing(*lost), step
