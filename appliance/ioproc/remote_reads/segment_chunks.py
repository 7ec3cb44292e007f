"""How the log of a remote segment is cut into chunks, and which of them has an offset.

A chunk begins where an entry of the offset index names a batch, so it holds whole batches: no batch
lies in two of them, and an answer never needs more than one. All positions are bytes of the
segment's log.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from appliance.logstore.indexes import OffsetIndex

CHUNK_BYTES: Final = 4 << 20
"""A chunk has about so many bytes: as long as the index has an entry there, never more."""

UNKNOWN_END: Final = -1


def cut_chunks(positions: Sequence[int], size: int, most: int) -> list[int]:
    """Where the chunks of a log of `size` bytes begin. positions: where batches begin, ascending,
    as many as are known. most: bytes of a chunk; one that has no known batch in it is longer."""
    begins, begin = [0], 0
    while begin + most < size:
        at = bisect_right(positions, begin + most)
        if at and positions[at - 1] > begin:
            begin = positions[at - 1]
        elif at < len(positions):
            begin = positions[at]
        else:
            break
        begins.append(begin)
    return begins


class SegmentChunks:
    """The chunks of one segment. index: its offset index. begins: of each chunk. ends: the offset
    behind the last record of each, UNKNOWN_END before it was seen. served: numbers of those that
    somebody has read from."""

    __slots__ = ("begins", "ends", "index", "served", "size", "start")

    def __init__(self, start: int, size: int, data: bytes, most: int = CHUNK_BYTES) -> None:
        """start: offset of the segment. data: the offset index, which was checked."""
        self.start = start
        self.size = size
        self.index = OffsetIndex(data)
        self.begins = cut_chunks(self.index.positions, size, most)
        self.ends = [UNKNOWN_END] * len(self.begins)
        self.served: set[int] = set()

    def __len__(self) -> int:
        return len(self.begins)

    def bounds(self, number: int) -> tuple[int, int]:
        """Where a chunk begins and ends."""
        behind = number + 1
        return self.begins[number], self.begins[behind] if behind < len(self) else self.size

    def number_of(self, position: int) -> int:
        """The chunk that has the byte at a position."""
        return bisect_right(self.begins, position) - 1

    def first_of(self, offset: int) -> int:
        """The first chunk that may have an offset, as far as the index and what was seen say."""
        number = self.number_of(self.index.position(offset - self.start))
        while number < len(self) and 0 <= self.ends[number] <= offset:
            number += 1
        return number
