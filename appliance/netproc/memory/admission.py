"""How much of the receive arena a connection may take: enough that requests which arrive side by
side are all served, and no stranger holds what others need.

A request longer than a unit takes its whole length at once, and those that find no room wait in the
order in which they came. Nothing reads their sockets meanwhile, so the kernel holds their senders
back (KIP-72's rule). Invariant: the first in line fits as soon as those before it are through,
because first bytes of frames take at most a part of the arena. Called by each connection's framing.
"""

from typing import Final

from appliance.netproc.memory.slabs import Slab, allocate
from appliance.ring.arena import UNIT, Arena

ASIDE: Final = 4096
"""Bytes of an unfinished frame that may wait outside the arena."""


class AddressShare:
    """Bytes of the arena that the connections of one address hold for what arrives."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0


class Admission:
    """in_line: connections wait for a run of units. head: the first of them asks now. aside: where
    bytes arrive that are kept outside the arena."""

    __slots__ = ("_ahead", "_all", "_few", "_runs", "_tight", "arena", "aside", "head", "in_line")

    def __init__(self, arena: Arena, size: int) -> None:
        self.arena = arena
        self._tight = size // 4
        self._ahead = size // 2
        self._runs = size - size // 8
        self._all = size - size // 16
        self._few = size // 64
        self.aside = memoryview(bytearray(ASIDE))
        self.in_line = self.head = False

    def is_tight(self) -> bool:
        """First bytes of frames are to be kept outside the arena until their need is known."""
        return self.in_line or self.arena.used >= self._tight

    def allocate(self, wanted: int, needed: int, share: AddressShare) -> Slab | None:
        """A slab of `wanted` bytes where there is plenty of room, else of `needed` ones; None: not
        now. The last units are for addresses that hold little."""
        arena = self.arena
        used = arena.used
        if wanted > needed and not self.in_line and used + wanted <= self._ahead:
            needed = wanted
        if needed > UNIT:
            if (self.in_line and not self.head) or used + needed > self._runs:
                return None
        elif used + UNIT > self._all and share.held >= self._few:
            return None
        slab = allocate(arena, needed, needed)
        if slab is not None:
            share.held += slab.limit - slab.position
        return slab

    def leave(self, slab: Slab, share: AddressShare) -> None:
        """The connection that had it needs it no more; requests in flight may."""
        share.held -= slab.limit - slab.position
        assert share.held >= 0, "an address gave back more than it had"
        slab.let_go()
