"""The aborted transactions of a log, in Kafka's transaction indexes: a file .txnindex beside each
segment that holds abort markers, 34 bytes for each (producer id, first and last offset, last stable
offset then; the last one is the marker's).

Invariant: ascending by the offset of the marker, and whole below the recovery point: an entry is in
its file before the marker is in the log, and syncs cover both. What lies above is made again from
the batches (`recovery`). An entry is of this log as long as its layout is the one that it was read
for: compaction drops aborted records, and then their entries. Read whole at the first question of a
reader with READ_COMMITTED.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.logstore.files import TXN_INDEX, offset_of

_ENTRY: Final = Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable
_VERSION: Final = 0
ENTRY: Final = _ENTRY.size
"""Bytes of one entry."""
assert ENTRY == 34

Aborted = tuple[int, int, int, int]
"""Producer id, first offset, offset of the marker, last stable offset when that was written."""


def encode(transactions: Iterable[Aborted]) -> bytes:
    """Entries of a file."""
    return b"".join([_ENTRY.pack(_VERSION, *one) for one in transactions])


def decode(data: bytes) -> Iterator[Aborted]:
    """The entries of a file; what does not ascend any more is space that was reserved, or
    damage."""
    before = -1
    whole = len(data) // ENTRY * ENTRY
    for version, producer, first, last, stable in _ENTRY.iter_unpack(data[:whole]):
        if version != _VERSION or last <= before or not 0 <= first < last:
            return
        before = last
        yield producer, first, last, stable


def rewrite(disk: Disk, path: str, below: int, more: Iterable[Aborted] = ()) -> bool:
    """A file keeps the transactions that ended below an offset, and gets `more` behind them;
    whether it had to be changed. Cut short, it still has what it keeps. Raises StorageFailed."""
    there = disk.exists(path)
    old = read_file(disk, path) if there else b""
    kept = ENTRY * sum(1 for one in decode(old) if one[2] < below)
    new = encode(more)
    if old[kept:] == new:
        return False
    file = disk.open_file(path, write=True) if there else disk.create(path)
    try:
        file.truncate(kept)
        if new:
            file.pwritev([new], kept)
    finally:
        file.close()
    return True


class AbortedTransactions:
    """layout: of the log that they were read for. end: behind the last of them, 0: there is
    none."""

    __slots__ = ("_firsts", "_lasts", "_producers", "_stables", "end", "layout")

    def __init__(self, disk: Disk, folder: str, layout: int) -> None:
        """Read all there are. Raises StorageFailed."""
        self.layout = layout
        self._producers, self._firsts = array("q"), array("q")
        self._lasts, self._stables = array("q"), array("q")
        self.end = 0
        names = [name for name in disk.listdir(folder) if offset_of(name, TXN_INDEX) >= 0]
        for name in sorted(names):
            for one in decode(read_file(disk, f"{folder}/{name}")):
                self.add(one)

    def add(self, transaction: Aborted) -> None:
        """One more; it may be known already."""
        producer, first, last, stable = transaction
        if last >= self.end:
            self._producers.append(producer)
            self._firsts.append(first)
            self._lasts.append(last)
            self._stables.append(stable)
            self.end = last + 1

    def forget_below(self, log_start: int) -> None:
        """Drops entries below the log start: no fetch can reach them."""
        gone = bisect_left(self._lasts, log_start)
        for column in (self._producers, self._firsts, self._lasts, self._stables):
            del column[:gone]

    def __iter__(self) -> Iterator[Aborted]:
        return zip(self._producers, self._firsts, self._lasts, self._stables, strict=True)

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
