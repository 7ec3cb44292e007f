"""Where a consumer's next fetch begins, found without asking the partition's home.

What lies below the published high watermark is immutable, so a fetch that goes on where the last
one of its connection was can be planned here: step over batch headers in the segment file from the
place that the home named last. The hop it saves is most of a small fetch's latency. Whatever is not
plain (another segment, many tiny batches, a high watermark that is not in it) is left to the
home.
"""

import os
from struct import Struct

from appliance.ring.partition_table import (
    END_SEGMENT,
    HIGH_WATERMARK,
    LAYOUT,
    LOG_START,
    ONLINE,
    STATUS,
    VERSION,
    VISIBLE_POSITION,
)

_HEAD = Struct(">qi11xi")  # base offset, length of what follows, last offset delta
_HEAD_BYTES = 27
assert _HEAD.size == _HEAD_BYTES
_LENGTH_PREFIX = 12  # base offset and length are not counted in the length
_MOST_STEPS = 32  # then asking is cheaper

Place = tuple[int, int, int, int, int]
"""(base offset of the segment, position, length, length of the first batch, layout), as FOUND says
it."""


class Cursors:
    """One connection's places: partition handle → (segment, position of a batch, layout)."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, int, int]] = {}

    def remember(self, handle: int, segment: int, position: int, layout: int) -> None:
        """The home said that a batch begins at `position` of `segment` in this layout."""
        self._places[handle] = (segment, position, layout)

    def segment(self, handle: int) -> int:
        """The segment that the last fetch was in, -1 when there was none."""
        place = self._places.get(handle)
        return -1 if place is None else place[0]

    def locate(
        self, handle: int, row: list[int], fd: int, offset: int, max_bytes: int
    ) -> Place | None:
        """The bytes from `offset` on; None: ask the home. row: of the partition table. fd: the
        remembered segment."""
        segment, position, layout = self._places[handle]
        limit = _readable(row, segment, fd)
        if limit < 0 or row[LAYOUT] != layout or not row[LOG_START] <= offset < row[HIGH_WATERMARK]:
            return None
        start = position
        for _ in range(_MOST_STEPS):
            if position + _HEAD_BYTES > limit:
                return None
            base, length, delta = _HEAD.unpack(os.pread(fd, _HEAD_BYTES, position))
            if position == start and base > offset:
                return None  # the consumer went back
            first: int = length + _LENGTH_PREFIX
            if base + delta >= offset:
                self._places[handle] = (segment, position, layout)
                room = limit - position
                if first > room:
                    return None
                return segment, position, max(first, min(max_bytes, room)), first, layout
            position += first
        return None


def _readable(row: list[int], segment: int, fd: int) -> int:
    """Bytes of the segment that are below the high watermark for sure, -1 when that is not
    plain."""
    if row[STATUS] != ONLINE or row[VERSION] & 1:
        return -1
    if segment == row[END_SEGMENT]:
        return row[VISIBLE_POSITION]
    if segment < row[END_SEGMENT] <= row[HIGH_WATERMARK]:
        return os.fstat(fd).st_size
    return -1
