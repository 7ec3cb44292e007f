"""Finding batches and records that are not at hand: through the indexes of a segment, then by
reading headers.

Called by `PartitionLog.locate` behind the dense tail, for timestamps, for truncations, and by
nobody else.
"""

from typing import Final

from appliance.logstore.active import ActiveSegment, FileRange
from appliance.logstore.scan import Found, HeaderFields
from appliance.logstore.segment import UNKNOWN, Segment
from appliance.logstore.segments import LogSegments
from appliance.wire import compression
from appliance.wire.batch_header import (
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX,
    LOG_APPEND_TIME_BIT,
    RECORDS_AT,
    BatchHeader,
)
from appliance.wire.compression import OPENED
from appliance.wire.ranges import NEVER, Batch, NotABatch, cut_sparsely, seek
from appliance.wire.record_walk import FAR, RECORD_COST, find_record

_READ: Final = 16 << 10
"""Bytes per read behind an index entry: with the default interval one read finds the batch."""


def find_batch(segments: LogSegments, segment: Segment, offset: int) -> Found | None:
    """The first batch of a segment that ends at or behind `offset`. Raises StorageFailed."""
    position, _, _ = _seek(segments, segment, offset)
    if position < 0:
        return None
    assert segment.file is not None
    data = segment.file.pread(HEADER_SIZE, position)
    if len(data) < HEADER_SIZE:
        raise segment.corrupt(position, "the header of a batch is cut off")
    return position, HEADER.unpack(data)


def _seek(segments: LogSegments, segment: Segment, offset: int) -> Batch:
    """The same without the header; position -1: none does."""
    segments.open_segment(segment)
    assert segment.index is not None and segment.file is not None
    position = _position(segments, segment, offset - segment.base)
    try:
        return seek(segment.file.pread, position, segment.size, offset, NEVER, _READ, NEVER)
    except NotABatch as problem:
        raise segment.corrupt(problem.position, problem.text) from None


def _position(segments: LogSegments, segment: Segment, relative: int) -> int:
    """Where to start looking; an index that names no batch there is built again."""
    index = segment.index
    assert index is not None
    count = index.count_to(relative)
    if not count:
        return 0
    found = segment.entry(segments.disk, count)
    if found is not None:
        return found[0]
    if segment is segments.all[-1]:
        return 0  # batches that are staged but not written yet are never looked for
    segments.rebuild(segment)
    return index.position(relative)


def locate(
    segments: LogSegments, active: ActiveSegment, offset: int, max_bytes: int, limit_offset: int
) -> FileRange | None:
    """Implements `PartitionLog.locate` for offsets that are not in the dense tail and lie below
    `limit_offset`.
    """
    every = segments.all
    number = segments.number(offset)
    while (found := _seek(segments, every[number], offset))[0] < 0:
        number += 1
        if number == len(every):
            return None
    segment = every[number]
    position, base, first = found
    if base >= limit_offset:
        return None
    end = segment.size
    following = every[number + 1].base if number + 1 < len(every) else active.end_offset
    if limit_offset < following:
        limit = active.tail_position(limit_offset) if segment is active else -1
        if limit < 0:
            behind = _seek(segments, segment, limit_offset)
            limit = behind[0] if behind[0] >= 0 else end
        end = limit
    room = end - position
    if room <= 0:
        return None
    assert segment.index is not None and segment.file is not None
    read, positions = segment.file.pread, segment.index.positions
    try:
        length = cut_sparsely(read, positions, found, room, max_bytes, _READ)
    except NotABatch as problem:
        raise segment.corrupt(problem.position, problem.text) from None
    return segment.base, position, length, first


# Timestamps ---------------------------------------------------------------------------------------


def newest_of(segments: LogSegments, segment: Segment) -> int:
    """The newest timestamp in a segment, -1 when its records have none."""
    if segment.newest == UNKNOWN:
        segments.open_segment(segment)
        assert segment.times is not None
        if not segment.times.timestamps and segment.size:
            segments.rebuild(segment)
        segment.newest, relative = segment.times.newest()
        segment.newest_offset = segment.base + relative
    return segment.newest


def offset_for_timestamp(
    segments: LogSegments, timestamp: int, limit_offset: int, log_start: int
) -> tuple[int, int, int] | None:
    """Implements `PartitionLog.offset_for_timestamp`: Kafka's search, segment by segment, then
    batch, then record.
    """
    for segment in segments.all:
        if newest_of(segments, segment) < timestamp:
            continue
        segments.open_segment(segment)
        assert segment.times is not None and segment.index is not None
        before = segment.times.offset_before(timestamp)
        position = _position(segments, segment, before)
        found = search_batches(segment, position, timestamp, limit_offset, log_start)
        if found is not None:
            return found if found[1] < limit_offset else None
    return None


def search_batches(
    segment: Segment, position: int, timestamp: int, limit_offset: int, log_start: int
) -> tuple[int, int, int] | None:
    """The first record from a batch of an open segment on that is not older, as (timestamp,
    offset, epoch); one at or behind `limit_offset` ends the search. Raises StorageFailed, and
    PeerError when the batch that holds it cannot be opened."""
    for at, header in segment.batches(position, segment.size, _READ):
        if header[8] < timestamp or header[0] + header[6] < log_start:
            continue
        if header[0] >= limit_offset:
            return header[8], header[0], header[2]
        found = _record(segment, at, header, timestamp, log_start)
        if found is not None:
            return found
    return None


def _record(
    segment: Segment, position: int, header: HeaderFields, timestamp: int, log_start: int
) -> tuple[int, int, int] | None:
    """The first record of a batch that is not older than `timestamp`."""
    base, length, epoch, _, _, attributes, last_delta, *_, count = header
    whole = count == last_delta + 1  # compaction took none of its records
    if base >= log_start and whole and attributes & LOG_APPEND_TIME_BIT:
        return header[8], base, epoch
    assert segment.file is not None
    batch = segment.file.pread(length + LENGTH_PREFIX, position)
    head = BatchHeader._make(header)
    earliest = timestamp - head.base_timestamp
    if head.is_log_append_time:  # as old as its head says, each of them
        earliest = -FAR
    OPENED[0] += RECORD_COST * count
    pieces = compression.pieces(head.codec, memoryview(batch)[RECORDS_AT:])
    found = find_record(pieces, count, earliest, log_start - base)
    if found is None:
        return None
    time, delta = found
    if head.is_log_append_time:
        return head.max_timestamp, base + delta, epoch
    return head.base_timestamp + time, base + delta, epoch


def max_timestamp(
    segments: LogSegments, limit_offset: int, log_start: int
) -> tuple[int, int, int] | None:
    """Implements `PartitionLog.max_timestamp`."""
    newest = max(newest_of(segments, segment) for segment in segments.all)
    return offset_for_timestamp(segments, newest, limit_offset, log_start)


def first_timestamp(segments: LogSegments, segment: Segment) -> int:
    """The newest timestamp of the first batch of a full segment, -1 when there is none."""
    if segment.size < HEADER_SIZE:
        return -1
    segments.open_segment(segment)
    assert segment.file is not None
    newest: int = HEADER.unpack(segment.file.pread(HEADER_SIZE, 0))[8]
    return newest
