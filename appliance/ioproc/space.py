"""Refuse to append while the disk still has room, so that ENOSPC never reaches a log.

Invariant: between two looks at the file system at most `step` bytes are appended, and `step` is a
quarter of what must stay free. The core asks before each produce; fetch, delete and retention go
on.
"""

from typing import Final

LOOK_EVERY_NS: Final = 500_000_000
"""Others fill disks too: look again after this time, however little we wrote."""


class SpaceGuard:
    """keep_bytes and keep_percent: what must stay free, whichever is more."""

    __slots__ = ("_budget", "_keep_bytes", "_keep_percent", "_next_look_ns", "free", "low")

    def __init__(self, keep_bytes: int, keep_percent: int) -> None:
        self._keep_bytes = keep_bytes
        self._keep_percent = keep_percent
        self._budget = 0
        self._next_look_ns = 0
        self.free = 0
        self.low = False

    def wrote(self, n: int) -> None:
        """Count n appended bytes towards the next look."""
        self._budget -= n

    def due(self, now_ns: int) -> bool:
        """Whether `look` should be called with fresh numbers."""
        return self._budget <= 0 or now_ns >= self._next_look_ns

    def look(self, now_ns: int, total: int, free: int) -> bool:
        """Take in the file system's numbers (bytes); True when `low` changed."""
        was = self.low
        limit = max(self._keep_bytes, total * self._keep_percent // 100)
        self.free = free
        # Twice as much must be free to resume as to go on, or a disk at the limit would flap.
        self.low = free < (2 * limit if was else limit)
        self._budget = max(limit // 4, 1 << 20)
        self._next_look_ns = now_ns + LOOK_EVERY_NS
        return self.low != was
