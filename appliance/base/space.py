"""How much room a file system has left, and what may still be written: a value machine.

Three steps, from most room to none. `low`: nothing that grows without end is taken any more
(records of clients, new partitions, compaction, moves). `tight`: groups take no new offsets either;
what frees room still may write, from the reserve (`reserve.py`). And ENOSPC itself, when others
fill the disk faster than we look: `exhausted`. Invariant: between two looks at most `step` bytes
are appended, and `step` is a quarter of what must stay free. Time and numbers are arguments.
"""

from typing import Final

LOOK_EVERY_NS: Final = 500_000_000
"""Others fill disks too: look again after this time, however little we wrote."""

KEEP_FREE_PERCENT: Final = 1
TIGHT_BYTES: Final = 64 << 10
"""Offsets are small: groups go on until so little is left, their half of the reserve included."""

_LONGEST_DOUBT: Final = 6  # doublings of LOOK_EVERY_NS


class SpaceGuard:
    """keep_bytes and keep_percent: what must stay free, whichever is more. free: bytes at the last
    look. missing: how many more must be free before records are taken again, 0 while they are."""

    __slots__ = (
        "_budget",
        "_doubted",
        "_doubts",
        "_keep_bytes",
        "_keep_percent",
        "_limit",
        "_next_look_ns",
        "_refused_until_ns",
        "_said",
        "free",
        "low",
        "tight",
    )

    def __init__(self, keep_bytes: int, keep_percent: int) -> None:
        self._keep_bytes = keep_bytes
        self._keep_percent = keep_percent
        self._limit = keep_bytes
        self._budget = 0
        self._doubted = False
        self._doubts = 0
        self._next_look_ns = 0
        self._refused_until_ns = 0
        self._said = False
        self.free = 0
        self.low = False
        self.tight = False

    def keep_free(self, keep_bytes: int) -> None:
        """Another number of bytes must stay free. What is less at the last look is refused at once,
        so that who was told of the number sees it; the rest is for the next look, due now."""
        if keep_bytes != self._keep_bytes:
            self._keep_bytes = keep_bytes
            self._next_look_ns = 0
            self.low = self.low or 0 < self.free < keep_bytes

    @property
    def missing(self) -> int:
        return max(2 * self._limit - self.free, 1) if self.low else 0

    def lacks(self, size: int, *, frees: bool = False) -> int:
        """How many bytes more must be free before `size` bytes may be written at leisure; 0: they
        may. frees: in the end there is more room than before (compaction), so that half of what
        must stay free may be used meanwhile."""
        if frees:
            return max(self._limit // 2 + size - self.free, 0)
        return max(self.missing, self._limit + size - self.free, 0)

    def wrote(self, n: int) -> bool:
        """Count n appended bytes towards the next look. Whether it is due by now."""
        self._budget -= n
        return self._budget <= 0

    def due(self, now_ns: int) -> bool:
        """True if `look` should be called with fresh numbers."""
        return self._budget <= 0 or now_ns >= self._next_look_ns

    def read_space(self, now_ns: int, total: int, free: int, spare: int = 0) -> bool:
        """Take in the file system's numbers (bytes); spare: what the reserve may give to groups.
        True when `low` is another than at the look before."""
        limit = self._limit = max(self._keep_bytes, total * self._keep_percent // 100)
        self.free = free
        # Twice as much must be free to resume as to go on, or a disk at the limit would flap.
        little = free < (2 * limit if self.low else limit)
        if little:
            self._doubts = 0
        elif self._doubted:
            self._refused_until_ns = now_ns + (LOOK_EVERY_NS << self._doubts)
            self._doubts = min(self._doubts + 1, _LONGEST_DOUBT)
        self._doubted = False
        self.low = little or now_ns < self._refused_until_ns
        least = min(TIGHT_BYTES, limit // 4)
        self.tight = free + spare < (2 * least if self.tight else least)
        self._budget = max(limit // 4, 1 << 20)
        self._next_look_ns = now_ns + LOOK_EVERY_NS
        was, self._said = self._said, self.low
        return self.low != was

    def exhausted(self) -> None:
        """A write found no room, whatever the last look said: refuse from now on, and for longer
        each time the file system says that there is room and has none."""
        self._doubted = self._doubted or not self.low
        self.low = True
        self._budget = 0
