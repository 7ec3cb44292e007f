"""Memory for what arrives: pieces of the receive arena, kept as long as anyone uses the bytes in
them.

A connection holds one slab and reads ahead into it; every request whose bytes an ioproc may still
read holds it too. The last one to let go returns the memory. A slab is never written again below
the connection's `end`.
"""

import mmap
from collections.abc import Iterable
from contextlib import suppress

from appliance.ring.arena import NO_ROOM, UNIT, Arena

_FRAMES_AHEAD = 16
_SHARE = 64  # one connection reads ahead into at most this part of the arena


class Slab:
    """`size` bytes at `position` of the arena."""

    __slots__ = ("_arena", "limit", "position", "users")

    def __init__(self, arena: Arena, position: int, size: int) -> None:
        self._arena = arena
        self.position = position
        self.limit = position + size
        self.users = 1

    def hold_slab(self) -> "Slab":
        """One more user."""
        self.users += 1
        return self

    def let_go(self) -> None:
        """One user less; the last one frees the memory."""
        self.users -= 1
        assert self.users >= 0, "a slab was let go more often than held"
        if self.users == 0:
            self._arena.free_slab(self.position)


def allocate(arena: Arena, wanted: int, needed: int) -> Slab | None:
    """A slab of `wanted` bytes, or at least of `needed` ones; None when the arena has no room even
    for those."""
    for length in (max(wanted, needed), needed):
        size = (length + UNIT - 1) // UNIT * UNIT
        position = arena.allocate(size)
        if position != NO_ROOM:
            return Slab(arena, position, size)
    return None


def preferred_size(largest_frame: int, arena_bytes: int) -> int:
    """Bytes worth having for a connection whose largest frame so far had `largest_frame` bytes."""
    return max(UNIT, min(largest_frame * _FRAMES_AHEAD, arena_bytes // _SHARE))


def check(arena: Arena, held: Iterable[Slab | None]) -> None:
    """Assert that all that is taken from the arena is `held`, so that nothing leaks; O(held)."""
    slabs = {slab.position: slab for slab in held if slab is not None}
    assert all(slab.users > 0 for slab in slabs.values()), "a slab is held that was freed"
    sizes = sum(slab.limit - slab.position for slab in slabs.values())
    assert sizes == arena.used, f"{arena.used - sizes} bytes of the arena are held by nobody"


def give_back(arena: Arena, memory: memoryview) -> None:
    """Return to the system what has been idle: after a flood the arena would keep all of it."""
    segment = memory.obj
    if isinstance(segment, mmap.mmap):
        for position, length in arena.idle():
            with suppress(OSError):  # where pages of shared memory cannot be removed they stay
                segment.madvise(mmap.MADV_REMOVE, position, length)
