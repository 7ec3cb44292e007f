"""What a network process asks of others: into their rings, or kept in order while one is full.

Invariant: while anything is kept, everything later is kept behind it, so each peer sees requests in
the order in which they were made. Called by the server, which reads no connection meanwhile.
"""

from collections import deque
from typing import Final

from appliance.ring.process_table import CONTROL, IOPROC
from appliance.ring.ring import PIECES
from appliance.shell.links import Links

CONTROL_HOME: Final = -1
"""Stands for control where an ioproc has its index."""
NOBODY_HOME: Final = -2
"""Stands there for what waits in this process."""

Fields = tuple[int, ...]
"""op, flags, handle, token, a, b, e, f; of another replica's READ c, d, g, h besides."""


class Outbox:
    """The writing ends of one network process. fresh: something was pushed since who publishes
    has put it back."""

    __slots__ = ("_by_home", "_links", "_piece", "fresh", "kept", "writers")

    def __init__(self, links: Links, ioprocs: int) -> None:
        self._links = links
        self.writers = [links.writer(IOPROC, n) for n in range(ioprocs)]
        self._by_home = dict(enumerate(self.writers)) | {CONTROL_HOME: links.writer(CONTROL, 0)}
        self._piece = [writer.max_payload // PIECES for writer in self.writers]
        self.fresh = False
        self.kept: deque[tuple[int, Fields, bytes | None]] = deque()

    def is_up(self, home: int) -> bool:
        """Whether that process lives."""
        if home == CONTROL_HOME:
            return self._links.is_up(CONTROL, 0)
        return self._links.is_up(IOPROC, home)

    def push(self, home: int, fields: Fields, payload: bytes | None) -> bool:
        """Whether it could be pushed: nothing is kept, there is room, and the process lives."""
        if self.kept:
            return False
        op, flags, handle, token, a, b, e, f, *more = fields
        self.fresh = True
        writer = self._by_home[home]
        if more:
            c, d, g, h, i = more
            return writer.push(op, flags, handle, token, a, b, c, d, g, h, i, e=e, f=f)
        if payload is None:
            return writer.push(op, flags, handle, token, a, b, e=e, f=f)
        return writer.push_with_payload(op, flags, handle, token, a, b, e, f, payload=payload)

    def keep(self, home: int, fields: Fields, payload: bytes | None) -> None:
        """For when there is room again, behind what is kept already."""
        self.kept.append((home, fields, payload))

    def pieces(self, home: int, caller: bytes, body: bytes) -> list[tuple[int, int, bytes]]:
        """A request that may be too long for the ring: (1 while more follow, bytes of the caller's
        name at the start of this piece, the piece)."""
        size = self._piece[home]
        whole = caller + body
        if len(whole) <= size:
            return [(0, len(caller), whole)]
        return [
            (int(at + size < len(whole)), 0 if at else len(caller), whole[at : at + size])
            for at in range(0, len(whole), size)
        ]

    def push_kept(self) -> bool:
        """Try again in order; whether nothing is kept any more."""
        waiting = self.kept.copy()
        self.kept.clear()
        while waiting and self.push(*waiting[0]):
            waiting.popleft()
        self.kept.extend(waiting)
        return not waiting

    def drop(self, homes: set[int]) -> bool:
        """These processes died: nothing is kept for them. Whether something else still is."""
        living = [one for one in self.kept if one[0] not in homes]
        self.kept.clear()
        self.kept.extend(living)
        return bool(living)
