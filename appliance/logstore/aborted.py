"""The aborted transactions of a log, as Kafka's transaction indexes tell them: a file .txnindex
beside each segment that holds abort markers, 34 bytes for each (producer id, first and last offset,
last stable offset then).

Invariant: ascending by the offset of the marker; an entry is of this log as long as its layout is
the one that it was read for (compaction drops aborted records, and then their entries with the
files). Read whole at the first question of a reader with READ_COMMITTED.
"""

from array import array
from bisect import bisect_left
from struct import Struct
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.logstore.files import TXN_INDEX, offset_of

_ENTRY: Final = Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable
_VERSION: Final = 0
assert _ENTRY.size == 34


class AbortedTransactions:
    """layout: of the log that they were read for. end: behind the last of them, 0: there is
    none."""

    __slots__ = ("_firsts", "_lasts", "_producers", "_stables", "end", "layout")

    def __init__(self, disk: Disk, folder: str, layout: int) -> None:
        """Read all there are. Raises StorageFailed."""
        self.layout = layout
        self._producers, self._firsts = array("q"), array("q")
        self._lasts, self._stables = array("q"), array("q")
        names = [name for name in disk.listdir(folder) if offset_of(name, TXN_INDEX) >= 0]
        for name in sorted(names):
            self._take(read_file(disk, f"{folder}/{name}"))
        self.end: int = self._lasts[-1] + 1 if self._lasts else 0

    def _take(self, data: bytes) -> None:
        """One file; what does not ascend any more is space that was reserved, or damage."""
        whole = len(data) // _ENTRY.size * _ENTRY.size
        for version, producer, first, last, stable in _ENTRY.iter_unpack(data[:whole]):
            ascends = not self._lasts or last > self._lasts[-1]
            if version != _VERSION or not ascends or not 0 <= first < last:
                break
            self._producers.append(producer)
            self._firsts.append(first)
            self._lasts.append(last)
            self._stables.append(stable)

    def within(self, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of each that has records from offset `start` on and below
        `end`."""
        if start >= self.end:
            return []
        at = bisect_left(self._lasts, start)
        found: list[tuple[int, int]] = []
        for number in range(at, len(self._lasts)):
            if self._firsts[number] < end:
                found.append((self._producers[number], self._firsts[number]))
            if self._stables[number] >= end:
                break  # all that began below `end` had ended then
        return found
