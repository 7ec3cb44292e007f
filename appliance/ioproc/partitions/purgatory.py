"""Parked reads: long polls that wait for the high watermark, as plain state without timers.

Invariant: a read is in its partition's `parked` and in the index by request, or in neither; it
holds numbers only, never arena memory. The netproc owns the deadline and sends CANCEL. Called by
the core.
"""

from typing import Final, Protocol

from appliance.base.dataclass import dataclass


class Parking(Protocol):
    """Where a read is parked: the partition it waits for."""

    parked: "dict[int, ParkedRead]"


@dataclass(slots=True)
class ParkedRead:
    """One READ that waits. min_bytes: what must be there before it is answered. visible: or this
    high watermark, 0: no matter. replica: the node that reads, -1: a consumer."""

    key: int  # peer << 64 | token
    partition: Parking
    peer: int
    token: int
    offset: int
    epoch: int
    flags: int
    max_bytes: int
    min_bytes: int
    visible: int = 0
    replica: int = -1


_NONE: Final[dict[int, ParkedRead]] = {}


class Purgatory:
    """Every parked read of one ioproc. limit: how many one netproc may have."""

    __slots__ = ("_by_request", "_count", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._by_request: dict[int, dict[int, ParkedRead]] = {}
        self._count: dict[int, int] = {}

    def park(self, read: ParkedRead) -> bool:
        """Keep `read` until it is taken; False when its peer is at the limit (answer it at
        once)."""
        peer = read.peer
        request = peer << 32 | read.token >> 32
        older = self._by_request.get(request, _NONE).get(read.key)
        if older is not None:  # a peer that uses a token twice loses its first read
            self.take_read(older)
        count = self._count.get(peer, 0)
        if count >= self.limit:
            return False
        self._count[peer] = count + 1
        read.partition.parked[read.key] = read
        self._by_request.setdefault(request, {})[read.key] = read
        return True

    def take_read(self, read: ParkedRead) -> None:
        """Forget one read, because it is being answered."""
        del read.partition.parked[read.key]
        request = read.peer << 32 | read.token >> 32
        of_request = self._by_request[request]
        del of_request[read.key]
        if not of_request:
            del self._by_request[request]
        self._count[read.peer] -= 1

    def cancel(self, peer: int, token: int) -> None:
        """Forget the reads of the request token >> 32 (CANCEL)."""
        of_request = self._by_request.pop(peer << 32 | token >> 32, None)
        if of_request is None:
            return
        self._count[peer] -= len(of_request)
        for key, read in of_request.items():
            del read.partition.parked[key]

    def drop_peer(self, peer: int) -> None:
        """Forget everything a dead netproc asked for."""
        for request in [r for r in self._by_request if r >> 32 == peer]:
            self.cancel(peer, (request & 0xFFFF_FFFF) << 32)
        assert not self._count.pop(peer, 0), "a parked read outlived its index"

    def __len__(self) -> int:
        return sum(self._count.values())
