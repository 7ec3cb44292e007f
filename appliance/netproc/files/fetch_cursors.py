"""Where a consumer's next fetch begins, found without asking the partition's home.

What lies below the published high watermark is immutable, so a fetch that goes on where the last
one of its connection was can be planned here, with the file of its segment and the file of its
index (`wire/ranges.py`). The hop it saves is most of a small fetch's latency, and the waking of
another process in a large one. Whatever is not plain (an offset somewhere else, an index that is
not written so far, holes that compaction left) is asked of the home.
"""

from typing import Final

from appliance.handlers.exchange import Place, Route
from appliance.netproc.files.segment_files import OpenSegment, SegmentFiles
from appliance.ring.partition_table import (
    DIRECTORY,
    FOLLOWING,
    HIGH_WATERMARK,
    LAYOUT,
    LOG_START,
    ONLINE,
    STABLE_POSITION,
    STABLE_SEGMENT,
    STATUS,
    VERSION,
    VISIBLE_POSITION,
    VISIBLE_SEGMENT,
)
from appliance.wire.ranges import NotABatch, cut_by_index, seek

_CHUNK: Final = 4096  # of each read: one header, or many tiny batches
_MOST_READS: Final = 8  # then asking is cheaper


class FetchCursors:
    """One connection's places: partition handle → (segment, where its last range began and ended,
    layout)."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, int, int, int]] = {}

    def remember(self, handle: int, segment: int, position: int, length: int, layout: int) -> None:
        """The home said that whole batches lie in these bytes of `segment` in this layout."""
        self._places[handle] = (segment, position, position + length, layout)

    def locate(
        self,
        segments: SegmentFiles,
        route: Route,
        row: list[int],
        offset: int,
        limit: int,
        max_bytes: int,
    ) -> Place | None:
        """The bytes from `offset` on; None: ask the home. row: of the partition table. limit: its
        high watermark or its last stable offset."""
        place = self._places.get(route.handle)
        if place is None:
            return None
        base, begin, end, layout = place
        status = row[STATUS]
        if (
            (status != ONLINE and status != FOLLOWING)
            or row[VERSION] & 1
            or row[LAYOUT] != layout
            or not row[LOG_START] <= offset < limit
        ):
            return None
        last, most = row[VISIBLE_SEGMENT], row[VISIBLE_POSITION]
        if limit < row[HIGH_WATERMARK]:
            last, most = row[STABLE_SEGMENT], row[STABLE_POSITION]
        file = segments.open_segment(route, base, row[DIRECTORY], layout) if base <= last else None
        if file is None:
            return None
        room = most if base == last else file.size()
        if base < last and end >= room:  # it ends: the next may be named so
            file = segments.open_segment(route, offset, row[DIRECTORY], layout)
            if file is None or offset > last:
                return None
            base, begin, end = offset, 0, 0
            room = most if base == last else file.size()
        found = _find(file, begin, end, room, offset, max_bytes, base)
        if found is not None:
            self._places[route.handle] = (base, found[1], found[1] + found[2], layout)
        return found


def _find(
    file: OpenSegment, begin: int, end: int, limit: int, offset: int, max_bytes: int, base: int
) -> Place | None:
    """The range from the batch with `offset` on: at `end`, where the last one ended, or from where
    that began, when the client took a part of it."""
    read = file.read
    try:
        batch = seek(read, end, limit, offset, limit, _CHUNK, _MOST_READS)
        if (batch[0] < 0 or batch[1] > offset) and begin < end:
            batch = seek(read, begin, limit, offset, limit, _CHUNK, _MOST_READS)
        position, first_offset, first = batch
        room = limit - position
        if position < 0 or first_offset > offset or first > room:
            return None
        length = room
        if room > max_bytes:
            length = first
            if first < max_bytes:
                entries = file.entries()
                length = cut_by_index(read, file.index, entries, base, batch, room, max_bytes)
    except NotABatch:
        return None
    return (file, position, length, first) if length else None
