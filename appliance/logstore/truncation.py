"""The end of a log goes back: which files go in which order, and what is true of what is left.

Invariant: whenever it is cut short, by the death of the process or of the machine, what is left is
a beginning of the log as it was, at least as long as it was to be. The newest file goes first, so
that no hole is ever left, and its going is durable before anything is written in its place: nothing
that was dropped comes back behind what was appended later. Called by the log and by recovery.
"""

from bisect import bisect_left
from contextlib import suppress
from typing import Final, NamedTuple

from appliance.base.disk import Disk
from appliance.base.errors import DiskFull, StorageFailed
from appliance.logstore import aborted, files, lookup
from appliance.logstore.active import Tail
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.parts import LogParts
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.replay import Replay, producers_at
from appliance.logstore.scan import Scan
from appliance.logstore.segment import Segment
from appliance.logstore.segments import LogSegments
from appliance.wire.batch_header import HEADER, HEADER_SIZE

_KNOWN: Final = "an opening believes that nothing below the recovery point can be gone"

assert files.SEGMENT_SUFFIXES[0] == files.LOG, "the others are leftovers without it"


class TruncationPoint(NamedTuple):
    """Where a log is to end: number of the segment, bytes of it that stay."""

    number: int
    position: int


class TruncatedSegment(NamedTuple):
    """The rest of a segment after truncation. end_offset: behind its last record, its base without
    any. tail, since_index: of the batches behind the last index entry. first_timestamp: of its
    first batch, -1 without any.
    """

    end_offset: int
    tail: Tail
    since_index: int
    first_timestamp: int


def take_back(log: LogParts, now_ms: int) -> None:
    """Implements `PartitionLog.take_back`: the log returns to what is written."""
    active = log.active
    had_producers, had_aborted = active.holds_producers, active.holds_aborted
    active.forget_staged()
    number = len(log.order.all) - 1
    try:
        left = _left(log.order, active, active.size)
        if had_producers:
            states = _producers(log, TruncationPoint(number, active.size), left.end_offset, now_ms)
            log.producers.become(states)
        if had_aborted:
            transactions = active.stem + files.TXN_INDEX
            if aborted.rewrite(log.order.disk, transactions, left.end_offset):
                log.unsynced.derived_changed(transactions)
    except StorageFailed as failure:
        log.fail(failure)
        raise
    assert left.end_offset <= active.end_offset, "a gap may lie before the end, nothing behind it"
    active.resume(left.tail, left.since_index, left.first_timestamp, now_ms)
    active.set_config(log.config)
    log.epochs.take_back(active.end_offset)
    active.epoch = log.epochs.latest


def truncate_to(log: LogParts, offset: int, now_ms: int) -> int:
    """Implements `PartitionLog.truncate_to`."""
    active = log.active
    if active.failure is not None:
        raise active.failure
    assert offset >= 0, offset
    _may_go_back(log)
    if active.has_unwritten:
        take_back(log, now_ms)
    if offset < max(log.log_start_offset, log.order.all[0].base):
        begin_anew(log, offset)
    elif offset < active.end_offset:
        try:
            _go_back(log, _place_of(log.order, offset), now_ms)
        except StorageFailed as failure:
            log.fail(failure)
            raise
    log.epochs.cut_end(log.active.end_offset)
    log.active.epoch = log.epochs.latest
    if log.epochs.changed:
        log.write_epochs()
    return log.active.end_offset


def _may_go_back(log: LogParts) -> None:
    assert not log.cleaning, "segments are under way"
    assert log.unsynced.job is None, "a sync would count what is gone"


def _go_back(log: LogParts, place: TruncationPoint, now_ms: int) -> None:
    """Everything is found out before anything changes; then files go from the newest on."""
    order, disk = log.order, log.order.disk
    segment = order.all[place.number]
    if segment is log.active:
        segment = log.active.handed_over()
    left = _left(order, segment, place.position)
    if left.end_offset < log.log_start_offset:  # compaction left a gap around the log start
        begin_anew(log, log.log_start_offset)
        return
    assert log.recovery_point <= left.end_offset, _KNOWN
    states = _producers(log, place, left.end_offset, now_ms)
    dropped = order.all[place.number + 1 :]
    log.layout += 1
    log.snapshots.keep_to(left.end_offset)
    drop(disk, log.path, dropped)
    cut(disk, segment, place.position)
    transactions = segment.stem + files.TXN_INDEX
    if disk.exists(transactions):
        aborted.rewrite(disk, transactions, left.end_offset)
    log.producers.become(states)
    _end_with(log, place.number, segment, left, now_ms)


def begin_anew(log: LogParts, offset: int) -> None:
    """Implements `PartitionLog.begin_anew`."""
    order, disk = log.order, log.order.disk
    if log.active.failure is not None:
        raise log.active.failure
    assert offset >= 0, offset
    _may_go_back(log)
    assert log.recovery_point == 0, "an opening may find no segment at all"
    log.active.forget_staged()
    log.layout += 1
    segment = Segment(log.path, offset, 0)
    try:
        log.snapshots.keep_to(-1)
        drop(disk, log.path, order.all)
        segment.create(disk)
        disk.sync_dir(log.path)  # or a checkpoint of the recovery point may outlive the segment
    except StorageFailed as failure:
        # There is no segment now: what only lacks room is final until the log is opened again.
        final = StorageFailed(failure.path, failure.errno, str(failure))
        log.fail(final)
        raise final from failure
    log.producers.become(ProducerStates())
    log.epochs.cut_end(0)
    log.log_start_offset = log.recovery_point = offset
    _end_with(log, 0, segment, TruncatedSegment(offset, (offset, [], []), 0, -1), 0)
    log.write_epochs()


def _end_with(
    log: LogParts, number: int, segment: Segment, left: TruncatedSegment, now_ms: int
) -> None:
    """`segment` is the last one, and takes the batches."""
    full = log.order.all[:number]
    log.unsynced.shortened(full, [*log.order.all[number:], segment], segment.size)
    log.unsynced.folders_changed((log.path,))
    active = log.active = log.activated(segment, left.end_offset)
    active.epoch = log.epochs.latest
    active.resume(left.tail, left.since_index, left.first_timestamp, now_ms)
    log.order.end_with(number, active)
    log.recovery_point = min(log.recovery_point, left.end_offset)
    log.saved_end = -1
    with suppress(DiskFull):  # it has them in memory, and writes them with the next ones
        active.write_indexes(log.order.disk)
    active.indexes_changed()
    transactions = active.stem + files.TXN_INDEX
    if log.order.disk.exists(transactions):  # what it keeps may not be on the disk yet
        log.unsynced.derived_changed(transactions)


def _place_of(segments: LogSegments, offset: int) -> TruncationPoint:
    """Where the log ends when everything from `offset` on has gone: at the start of the batch that
    has it or follows it, in the oldest segment that can end there. Raises StorageFailed."""
    every = segments.all
    number = segments.number(offset)
    while number and every[number].base >= offset:
        number -= 1
    found = lookup.find_batch(segments, every[number], offset)
    return TruncationPoint(number, every[number].size if found is None else found[0])


def _left(segments: LogSegments, segment: Segment, position: int) -> TruncatedSegment:
    """Reads the state of a segment that ends at `position`, the start of a batch, and cuts its
    indexes and newest timestamp in memory to that end. Raises StorageFailed.
    """
    disk = segments.disk
    index, _ = segment.read_indexes(disk)
    found = segment.entry(disk, bisect_left(index.positions, position))
    start, offset = found or (0, segment.base)
    file = segment.reader(disk)
    scan = Scan(file, start, position, offset, trust_position=position)
    replay = Replay(ProducerStates(), LeaderEpochs(), segments.interval, 0)
    tail, since_index, _ = replay.replay_scan(segment, scan)
    if scan.problem:
        raise segment.corrupt(scan.position, scan.problem)
    first = HEADER.unpack(file.pread(HEADER_SIZE, 0))[8] if position else -1
    return TruncatedSegment(scan.next_offset, tail, since_index, first)


def _producers(
    log: LogParts, place: TruncationPoint, end_offset: int, now_ms: int
) -> ProducerStates:
    """The states of the producers when the log ends there."""
    segment = log.order.all[place.number]
    return producers_at(
        log.order.disk,
        log.order.all,
        log.snapshots,
        end_offset,
        place,
        now_ms,
        lambda offset, text: segment.corrupt(place.position, f"offset {offset}: {text}"),
    )


def drop(disk: Disk, folder: str, dropped: list[Segment]) -> None:
    """Remove segments at the end of a log, durably: they must never come back. Raises
    StorageFailed."""
    for segment in reversed(dropped):
        segment.rest()
        for suffix in files.SEGMENT_SUFFIXES:
            if disk.exists(segment.stem + suffix):
                disk.unlink(segment.stem + suffix)
    if dropped:
        disk.sync_dir(folder)


def cut(disk: Disk, segment: Segment, position: int) -> None:
    """Cut the file of the last segment, durably, and leave it open for writing. Raises
    StorageFailed."""
    segment.rest_file()
    segment.file = file = disk.open_file(segment.path, write=True)
    if position < segment.size:
        file.truncate(position)
        file.sync()  # or the torn bytes come back under what is appended elsewhere
        segment.size = position
