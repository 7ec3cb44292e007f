"""Which bytes of a segment file a reader gets: whole batches, from the one with its offset on.

A value machine over a door that reads bytes of one file. The home of a partition is behind it with
the positions that it has in memory or in its index; a network process for a reader that goes on
where it was, with nothing but the file and the index file. Nobody else steps over batches.
Invariant: a range begins with a batch and ends behind one; only what lies below the limit that the
caller names (high watermark or last stable offset) is looked at.
All positions and lengths are bytes of the segment file.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

from appliance.wire.batch_header import HEADER_SIZE, LENGTH_PREFIX, MAGIC

Read = Callable[[int, int], bytes]
"""(length, position) → the bytes there, fewer at the end of the file. Raises what the file
raises."""

Batch = tuple[int, int, int]
"""(position, base offset, length) of one batch."""

NO_BATCH: Final[Batch] = (-1, -1, 0)

_HEAD: Final = Struct(">qiibIhi")  # up to the last offset delta
_HEAD_BYTES: Final = _HEAD.size
_SHORTEST: Final = HEADER_SIZE - LENGTH_PREFIX
_ENTRY: Final = 8  # bytes of an entry of an index: relative offset and position, int32 each
assert array("i").itemsize * 2 == _ENTRY
_SPARE: Final = 16  # entries read beyond what a range needs as a rule
_DENSEST: Final = 1 << 12  # bytes between entries; seldom fewer (index.interval.bytes)

_unpack_head = _HEAD.unpack_from


class NotABatch(Exception):
    """Raised when `position` of the file holds no batch of format 2."""

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.position = position
        self.text = text


def seek(
    read: Read, position: int, end: int, offset: int, stop: int, chunk: int, reads: int
) -> Batch:
    """Step over batches from the one at `position` on, to the first that ends at or behind
    `offset`, or else whose end is behind position `stop`; NO_BATCH when neither comes before `end`.

    chunk: bytes per read. reads: after so many it is given up (NO_BATCH). Raises NotABatch.
    """
    for _ in range(reads):
        if position >= end:
            break
        data = read(min(chunk, end - position), position)
        here = len(data)
        at = 0
        while at + _HEAD_BYTES <= here:
            base, length, _, magic, _, _, delta = _unpack_head(data, at)
            if magic != MAGIC or length < _SHORTEST:
                raise NotABatch(position + at, "there is no batch of format 2")
            length += LENGTH_PREFIX
            if base + delta >= offset or position + at + length > stop:
                return position + at, base, length
            at += length
        if not at:
            raise NotABatch(position, "the header of a batch is cut off")
        position += at
    return NO_BATCH


def cut(positions: Sequence[int], position: int, first: int, room: int, max_bytes: int) -> int:
    """How much of the `room` from `position` on a reader of `max_bytes` gets: the first batch, then
    as many as fit.

    positions: where batches begin, ascending, as many of them as are known. first: length of the
    first batch.
    """
    if room <= max_bytes:
        return room
    if first >= max_bytes:
        return first
    at = bisect_right(positions, position + max_bytes) - 1
    return max(positions[at] - position, first) if at >= 0 else first


def cut_sparsely(
    read: Read, positions: Sequence[int], found: Batch, room: int, max_bytes: int, chunk: int
) -> int:
    """The same where only some positions are known: when they make too little of it, the rest is
    stepped over. Raises NotABatch."""
    position, _, first = found
    length = cut(positions, position, first, room, max_bytes)
    if length < room and length < max_bytes // 2:
        begin, most = position + length, position + max_bytes
        last = seek(read, begin, position + room, NEVER, most, chunk, _MOST_READS)
        length = max(last[0] - position, length)
    return length


NEVER: Final = 1 << 62
"""An offset that no batch reaches."""

_MOST_READS: Final = 1 << 16


# The file of an offset index, for who does not have it in memory ----------------------------------


def cut_by_index(
    read: Read, index: Read, count: int, base: int, found: Batch, room: int, max_bytes: int
) -> int:
    """The same with the index file alone, 0 where it does not tell enough.

    index: reads the index file, which has `count` entries. base: offset of the segment. What it
    says is believed when there is such a batch: an index may be damaged.
    """
    position, _, first = found
    offsets, positions = _entries(index, count, position, max_bytes)
    length = cut(positions, position, first, room, max_bytes)
    if length < max_bytes // 2:
        return 0  # the index ends, or has been written so far only, before it is enough
    if length in (first, room):
        return length
    end = position + length
    last = base + offsets[bisect_left(positions, end)]
    return length if _ends_with(read, end, last) else 0


def _ends_with(read: Read, position: int, last: int) -> bool:
    """True if there is a batch at `position` whose last offset is `last`."""
    data = read(_HEAD_BYTES, position)
    if len(data) < _HEAD_BYTES:
        return False
    base, length, _, magic, _, _, delta = _unpack_head(data, 0)
    return bool(magic == MAGIC and length >= _SHORTEST and base + delta == last)


def _entries(
    index: Read, count: int, position: int, room: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Entries from `position` on for about the next `room` bytes: relative offsets of the last
    records of batches, and the positions of these batches."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if int.from_bytes(index(_ENTRY, middle * _ENTRY)[4:], "big") < position:
            low = middle + 1
        else:
            high = middle
    data = index(min(count - low, room // _DENSEST + _SPARE) * _ENTRY, low * _ENTRY)
    numbers = array("i", data[: len(data) // _ENTRY * _ENTRY])
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers[0::2], numbers[1::2]
