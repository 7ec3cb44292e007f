"""Frames out of a stream of bytes: four bytes of length, then so many of a request.

No socket here: whoever has bytes puts them where `room` says, tells how many with `arrived`, and
takes whole frames with `next`. They stay where they are, so that an ioproc can write from there.
Invariant: a slab is written only behind `end`, and only from the start again when nobody else uses
it. A frame may reserve only a small multiple of what its sender has sent.
"""

from struct import Struct
from typing import Final

from appliance.netproc.slabs import Slab, allocate, preferred_size
from appliance.ring.arena import Arena

_LENGTH = Struct(">i").unpack_from
_KEY: Final = Struct(">h")
_PREFIX: Final = 4
SMALLEST_FRAME: Final = 8
"""Bytes of API key, version and correlation id, without which nothing can be answered."""
_GROWTH: Final = 2  # a frame may reserve so many times what its sender has sent so far
FIRST_ROOM: Final = 256 * 1024


class FrameRefused(Exception):
    """A length that no request has. head: the four bytes that say so."""

    def __init__(self, length: int, head: bytes) -> None:
        super().__init__(f"a frame of {length} bytes")
        self.length = length
        self.head = head


class Framing:
    """The bytes of one connection from `start` to `end` of the arena have arrived and are not
    taken. body: where the frame that was taken last begins, behind its length."""

    __slots__ = ("_arena", "_largest", "_limit", "_memory", "body", "end", "slab", "start")

    def __init__(self, arena: Arena, memory: memoryview, limit: int) -> None:
        """memory: what the arena hands out. limit: bytes of the longest frame."""
        assert SMALLEST_FRAME <= limit <= len(memory)
        self._arena = arena
        self._memory = memory
        self._limit = limit
        self._largest = 0  # frame so far, in bytes
        self.slab: Slab | None = None
        self.start = self.end = self.body = 0

    def room(self) -> memoryview | None:
        """Where the next bytes are to be put; None while the arena has no room."""
        slab = self.slab
        start, end = self.start, self.end
        if slab is None:
            slab = allocate(self._arena, preferred_size(self._largest, len(self._memory)), 1)
            if slab is None:
                return None
            self.slab = slab
            self.start = self.end = slab.position
        elif start == end and slab.users == 1:
            self.start = self.end = slab.position
        elif end == slab.limit or start != end:
            needed = self._needed()
            if needed > slab.limit - start:
                slab = self._move(needed)
                if slab is None:
                    return None
        return self._memory[self.end : slab.limit]

    def arrived(self, count: int) -> None:
        """So many bytes were put there."""
        slab = self.slab
        assert slab is not None and 0 < count <= slab.limit - self.end
        self.end += count

    def next(self) -> int:
        """Take the next frame: where it ends, from `body` on; 0 when none is whole yet. Raises
        FrameRefused."""
        start = self.start
        have = self.end - start
        if have < _PREFIX:
            return 0
        length: int = _LENGTH(self._memory, start)[0]
        if not SMALLEST_FRAME <= length <= self._limit:
            raise FrameRefused(length, bytes(self._memory[start : start + _PREFIX]))
        if have < _PREFIX + length:
            return 0
        if length > self._largest:
            self._largest = length
        self.body = start + _PREFIX
        self.start = start + _PREFIX + length
        return self.start

    def key(self) -> int:
        """The API key of the frame that comes next, -1 when it is not here yet."""
        at = self.start + _PREFIX
        if self.end - at < _KEY.size:
            return -1
        return int(_KEY.unpack_from(self._memory, at)[0])

    def waiting(self) -> bool:
        """Whether `next` would take one. Raises FrameRefused."""
        start, body = self.start, self.body
        found = self.next()
        self.start, self.body = start, body
        return found != 0

    def received(self) -> bytes:
        """What has arrived and is not taken."""
        return bytes(self._memory[self.start : self.end])

    def take(self, received: bytes) -> bool:
        """Bytes that arrived elsewhere; False: there is no room for them."""
        left = memoryview(received)
        while left:
            room = self.room()
            if room is None:
                return False
            count = min(len(left), len(room))
            room[:count] = left[:count]
            self.arrived(count)
            left = left[count:]
        return True

    def rest(self) -> None:
        """Give the memory back if nothing is in it."""
        slab = self.slab
        if slab is not None and self.start == self.end and slab.users == 1:
            self.drop()

    def drop(self) -> None:
        """Whatever has arrived is forgotten; memory that others use stays theirs."""
        slab = self.slab
        if slab is not None:
            slab.let_go()
            self.slab = None
            self.start = self.end = 0

    def _needed(self) -> int:
        """Bytes from `start` on in which the frame that is arriving fits, or more of it while its
        sender has shown little."""
        have = self.end - self.start
        if have < _PREFIX:
            return have + 1
        length: int = _LENGTH(self._memory, self.start)[0]
        trusted = max(_GROWTH * have, _GROWTH * self._largest, FIRST_ROOM)
        return max(have + 1, min(_PREFIX + length, trusted))

    def _move(self, needed: int) -> Slab | None:
        """Go to a slab of so many bytes, or of what is better."""
        old = self.slab
        assert old is not None
        have = self.end - self.start
        wanted = preferred_size(self._largest, len(self._memory))
        slab = allocate(self._arena, wanted, needed)
        if slab is None:
            return None
        target = slab.position
        memory = self._memory
        memory[target : target + have] = memory[self.start : self.end]
        old.let_go()
        self.slab = slab
        self.start, self.end = target, target + have
        return slab
