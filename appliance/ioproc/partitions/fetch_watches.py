"""Watches: fetches that wait for any of many partitions, as plain state without timers.

A parked READ is one partition's (`purgatory.py`); a fetch of a thousand partitions would park a
thousand, each time that it waits. It leaves a set of rows here instead, and is told once. The
netproc owns the deadline and sends CANCEL. Invariant: a watch is here until it is told, cancelled
or its netproc dies; it holds numbers only. Called by `reads.py` and the core.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from struct import unpack
from typing import Final

from appliance.ioproc.partitions.partition import Partition
from appliance.ring.messages import WATCHED, WATCHED_BYTES
from appliance.ring.partition_table import COLUMNS, ROW_MASK

MOST: Final = 256
"""So many watches one netproc may have by default: each is looked at in each turn in which
something grows."""
MOST_ROWS: Final = 1 << 18
"""So many rows they may name together; each takes some 60 bytes."""

_VERSION: Final = 0xFFFF_FFFF


@dataclass(slots=True, eq=False)
class FetchWatch:
    """The watch of one netproc and token. kinds: events to report, as WATCH has it. rows:
    handles.
    """

    peer: int
    token: int
    kinds: int
    rows: set[int]


def rows_of(payload: bytes) -> list[int]:
    """The partitions of a WATCH: handle << 32 | version of each."""
    return list(unpack(f"={len(payload) // WATCHED_BYTES}{WATCHED}", payload))


def unmoved(
    watched: list[int], partitions: Mapping[int, Partition], state: memoryview
) -> set[int] | None:
    """The handles, while each partition is served here and its row has that version; else None."""
    rows = set()
    for each in watched:
        handle = each >> 32
        if handle not in partitions:
            return None
        version: int = state[(handle & ROW_MASK) * COLUMNS]
        if version & _VERSION != each & _VERSION:
            return None
        rows.add(handle)
    return rows


class FetchWatches:
    """Every watch of one ioproc. waits: whether there is any. While there is, `moved` is told of
    each row. most: of one netproc."""

    __slots__ = ("_by_request", "_moved", "_rows", "most", "waits")

    def __init__(self) -> None:
        self.most = MOST
        self.waits = False
        self._by_request: dict[int, list[FetchWatch]] = {}
        self._rows: dict[int, list[int]] = {}  # by peer: how many each of its watches names
        self._moved: dict[int, int] = {}  # by handle, in this turn: kinds

    def add(self, watch: FetchWatch) -> bool:
        """Keep it until it is taken; False when its peer has so many that it must not."""
        rows = self._rows.setdefault(watch.peer, [])
        if len(rows) >= self.most or sum(rows) + len(watch.rows) > MOST_ROWS:
            return False
        rows.append(len(watch.rows))
        self._by_request.setdefault(watch.peer << 32 | watch.token >> 32, []).append(watch)
        self.waits = True
        return True

    def moved(self, handle: int, kinds: int) -> None:
        """This row says something else now."""
        self._moved[handle] = self._moved.get(handle, 0) | kinds

    def take_news(self) -> list[FetchWatch]:
        """Those for whom there is news since this was asked last: they are over."""
        moved, told = self._moved, list[FetchWatch]()
        for watch in self._all() if moved else ():
            for handle in moved.keys() & watch.rows:
                if moved[handle] & watch.kinds:
                    told.append(watch)
                    break
        for watch in told:
            request = watch.peer << 32 | watch.token >> 32
            of_request = self._by_request[request]
            of_request.remove(watch)
            if not of_request:
                del self._by_request[request]
            self._forget(watch)
        moved.clear()
        return told

    def has(self, handle: int) -> bool:
        """True if any watch includes this row."""
        return any(handle in watch.rows for watch in self._all())

    def cancel(self, peer: int, token: int) -> None:
        """Forget those of the request token >> 32 (CANCEL)."""
        for watch in self._by_request.pop(peer << 32 | token >> 32, ()):
            self._forget(watch)

    def drop_peer(self, peer: int) -> None:
        """Forget everything that a dead netproc watched."""
        for request in [one for one in self._by_request if one >> 32 == peer]:
            self.cancel(peer, (request & 0xFFFF_FFFF) << 32)
        assert not self._rows.pop(peer, None), "a watch outlived its request"

    def __len__(self) -> int:
        return sum(map(len, self._by_request.values()))

    def _forget(self, watch: FetchWatch) -> None:
        self._rows[watch.peer].remove(len(watch.rows))
        self.waits = bool(self._by_request)
        if not self.waits:
            self._moved.clear()

    def _all(self) -> list[FetchWatch]:
        return list(chain.from_iterable(self._by_request.values()))
