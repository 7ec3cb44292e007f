"""Finding batches and records that are not at hand: through the indexes of a segment, then by
reading headers.

Invariant: a segment that was only read gives its descriptor and indexes back when RESTING others
were read after it. Called by `Log.locate` behind the dense tail, for timestamps, and by nobody
else.
"""

import errno
from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Final

from appliance.base.errors import StorageFailed
from appliance.logstore.log_state import LogState
from appliance.logstore.scan import Found, HeaderFields, Scan
from appliance.logstore.segment import UNKNOWN, Segment
from appliance.wire.batch_header import (
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX,
    LOG_APPEND_TIME_BIT,
    MAGIC,
)
from appliance.wire.records import iter_records

if TYPE_CHECKING:
    from appliance.logstore.log import FileRange

RESTING: Final = 4
"""Segments besides the active one that stay open for reading, per log."""

_HEAD: Final = Struct(">qiibIhi")  # up to the last offset delta
_SHORTEST: Final = HEADER_SIZE - LENGTH_PREFIX
_base = attrgetter("base")

_READ: Final = 16 << 10
"""Bytes per read behind an index entry: with the default interval one read finds the batch."""


def let_rest(log: LogState, segment: Segment) -> None:
    """`segment` is open only for reading from now on: the longest unused of its kind is closed."""
    resting = log.resting
    resting.append(segment)
    if len(resting) > RESTING:
        resting.pop(0).rest()


def _wake(log: LogState, segment: Segment) -> None:
    """Open a segment and its indexes, and build these again where they are of no use."""
    resting = log.resting
    if segment.index is not None and segment.file is not None:
        if resting and segment in resting and resting[-1] is not segment:
            resting.remove(segment)
            resting.append(segment)
        return
    segment.reader(log.disk)
    index, _ = segment.read_indexes(log.disk)
    if not index.offsets and segment.size > 2 * log.config.index_interval_bytes:
        _rebuild(log, segment)
    let_rest(log, segment)


def _rebuild(log: LogState, segment: Segment) -> None:
    """Index files of an old segment are missing or damaged: make them from its batches."""
    assert segment.index is not None and segment.times is not None
    segment.index.keep(0)
    segment.times.keep_to(-1)
    newest, newest_offset, since = -1, 0, 0
    for position, header in _batches(segment, 0, segment.size):
        relative = header[0] + header[6] - segment.base
        if header[8] > newest:
            newest, newest_offset = header[8], relative
        if since > log.config.index_interval_bytes:
            segment.index.append(relative, position)
            segment.times.append(newest, newest_offset)
            since = 0
        since += header[1] + LENGTH_PREFIX
    segment.times.append(newest, newest_offset)
    segment.write_indexes(log.disk)


def _batches(segment: Segment, position: int, end: int, chunk: int = 1 << 20) -> Iterator[Found]:
    """The batches of an open segment from `position` on, their bodies not looked at."""
    assert segment.file is not None
    scan = Scan(segment.file, position, end, segment.base, trust_position=end, chunk=chunk)
    for found in scan.chunks():
        yield from found
    if scan.problem:
        raise _corrupt(segment, scan.position, scan.problem)


def _size(log: LogState, segment: Segment) -> int:
    return log.active_size if segment is log.active else segment.size


def _number(log: LogState, offset: int) -> int:
    """Which segment an offset belongs to."""
    return max(bisect_right(log.segments, offset, key=_base) - 1, 0)


def _find(log: LogState, segment: Segment, offset: int) -> Found | None:
    """The first batch of a segment that ends at or behind `offset`."""
    _wake(log, segment)
    assert segment.index is not None and segment.file is not None
    position = _position(log, segment, offset - segment.base)
    size = _size(log, segment)
    while position < size:
        data = segment.file.pread(min(_READ, size - position), position)
        at = 0
        while at + HEADER_SIZE <= len(data):
            base, length, _, magic, _, _, last_delta = _HEAD.unpack_from(data, at)
            if magic != MAGIC or length < _SHORTEST:
                raise _corrupt(segment, position + at, "there is no batch of format 2")
            if base + last_delta >= offset:
                return position + at, HEADER.unpack_from(data, at)
            at += length + LENGTH_PREFIX
        if not at:
            raise _corrupt(segment, position, "the header of a batch is cut off")
        position += at
    return None


def _position(log: LogState, segment: Segment, relative: int) -> int:
    """Where to start looking; an index that names no batch there is built again."""
    index = segment.index
    assert index is not None and segment.file is not None
    count = index.count_to(relative)
    if not count:
        return 0
    position, last = index.positions[count - 1], segment.base + index.offsets[count - 1]
    data = segment.file.pread(HEADER_SIZE, position)
    if len(data) == HEADER_SIZE:
        header = HEADER.unpack(data)
        if header[3] == MAGIC and header[0] + header[6] == last:
            return position
    if segment is log.active:
        return 0  # batches that are staged but not written yet are never looked for
    _rebuild(log, segment)
    return index.position(relative)


def _corrupt(segment: Segment, position: int, text: str) -> StorageFailed:
    return StorageFailed(segment.path, errno.EBADMSG, f"corrupt at byte {position}: {text}")


def locate(log: LogState, offset: int, max_bytes: int, limit_offset: int) -> "FileRange | None":
    """What `Log.locate` does, for offsets that are not in the dense tail and lie below
    `limit_offset`."""
    segments = log.segments
    number = _number(log, offset)
    while (found := _find(log, segments[number], offset)) is None:
        number += 1
        if number == len(segments):
            return None
    segment = segments[number]
    position, header = found
    if header[0] >= limit_offset:
        return None
    end = _size(log, segment)
    following = segments[number + 1].base if number + 1 < len(segments) else log.end_offset
    if limit_offset < following:
        limit = log.tail_position(limit_offset) if segment is log.active else -1
        if limit < 0:
            behind = _find(log, segment, limit_offset)
            limit = behind[0] if behind is not None else end
        end = limit
    first = header[1] + LENGTH_PREFIX
    length = min(end - position, max(max_bytes, first))
    return (segment.base, position, length, first) if length > 0 else None


# Timestamps ---------------------------------------------------------------------------------------


def newest_of(log: LogState, segment: Segment) -> int:
    """The newest timestamp in a segment, -1 when its records have none."""
    if segment is log.active:
        return log.newest
    if segment.newest == UNKNOWN:
        _wake(log, segment)
        assert segment.times is not None
        if not segment.times.timestamps and segment.size:
            _rebuild(log, segment)
        segment.newest, relative = segment.times.newest()
        segment.newest_offset = segment.base + relative
    return segment.newest


def offset_for_timestamp(
    log: LogState, timestamp: int, limit_offset: int
) -> tuple[int, int, int] | None:
    """What `Log.offset_for_timestamp` does: Kafka's search, segment by segment, then batch, then
    record."""
    for segment in log.segments:
        if newest_of(log, segment) < timestamp:
            continue
        _wake(log, segment)
        assert segment.times is not None and segment.index is not None
        before = segment.times.offset_before(timestamp)
        position = _position(log, segment, before)
        for at, header in _batches(segment, position, _size(log, segment), _READ):
            if header[8] < timestamp or header[0] + header[6] < log.log_start_offset:
                continue
            if header[0] >= limit_offset:
                return None
            found = _record(segment, at, header, timestamp, log.log_start_offset)
            if found is not None:
                return found if found[1] < limit_offset else None
    return None


def _record(
    segment: Segment, position: int, header: HeaderFields, timestamp: int, log_start: int
) -> tuple[int, int, int] | None:
    """The first record of a batch that is not older than `timestamp`."""
    base, length, epoch, _, _, attributes, last_delta, base_timestamp, *_, count = header
    whole = count == last_delta + 1  # compaction took none of its records
    if (
        base >= log_start
        and whole
        and (
            attributes & LOG_APPEND_TIME_BIT
            or (base_timestamp >= timestamp and not attributes & DELETE_HORIZON_BIT)
        )
    ):
        newest = header[8]
        return (newest if attributes & LOG_APPEND_TIME_BIT else base_timestamp), base, epoch
    assert segment.file is not None
    batch = segment.file.pread(length + LENGTH_PREFIX, position)
    for record in iter_records(batch):
        if record.timestamp >= timestamp and record.offset >= log_start:
            return record.timestamp, record.offset, epoch
    return None


def max_timestamp(log: LogState) -> tuple[int, int, int] | None:
    """What `Log.max_timestamp` does."""
    newest = max(newest_of(log, segment) for segment in log.segments)
    return offset_for_timestamp(log, newest, log.end_offset) if newest >= 0 else None


def first_timestamp(log: LogState, segment: Segment) -> int:
    """The newest timestamp of the first batch of a full segment, -1 when there is none."""
    if segment.size < HEADER_SIZE:
        return -1
    _wake(log, segment)
    assert segment.file is not None
    newest: int = HEADER.unpack(segment.file.pread(HEADER_SIZE, 0))[8]
    return newest
