"""Frames out of a stream of bytes: four bytes of length, then so many of a request.

No socket here: whoever has bytes puts them where `room` says, tells how many with `arrived`, and
takes whole frames with `next`. They stay where they are, so that an ioproc can write from there.
While memory is short, the first bytes of a frame stay outside the arena until `settle_bytes`.
Invariant: a slab is written only behind `end`, and only from the start again when nobody else uses
it. A frame reserves its whole length, once its sender has sent a unit of it or has sent as much
before.
"""

from struct import Struct
from typing import Final

from appliance.netproc.memory.admission import ASIDE, AddressShare, Admission
from appliance.netproc.memory.slabs import Slab, preferred_size
from appliance.ring.arena import UNIT

_LENGTH = Struct(">i").unpack_from
_KEY: Final = Struct(">h")
_PREFIX: Final = 4
SMALLEST_FRAME: Final = 8
"""Bytes of API key, version and correlation id, without which nothing can be answered."""
_GROWTH: Final = 2  # a frame may reserve at once so many times what one before it had
SHOWN: Final = UNIT
"""Bytes of a frame that show that its sender means it."""


class FrameRefused(Exception):
    """A length that no request has. head: the four bytes that say so."""

    def __init__(self, length: int, head: bytes) -> None:
        super().__init__(f"a frame of {length} bytes")
        self.length = length
        self.head = head


class Framing:
    """The bytes of one connection from `start` to `end` of the arena have arrived and are not
    taken. body: where the frame that was taken last begins, behind its length. aside: what has
    arrived and is not in the arena; never beside a slab. limit: bytes of the longest frame."""

    __slots__ = (
        "_admission", "_largest", "_memory", "_share", "aside", "body", "end", "limit", "slab",
        "start",
    )  # fmt: skip

    def __init__(
        self, admission: Admission, memory: memoryview, limit: int, share: AddressShare
    ) -> None:
        """memory: what the arena hands out. limit: bytes of the longest frame. share: the
        address's."""
        assert SMALLEST_FRAME <= limit <= len(memory)
        self._admission = admission
        self._share = share
        self._memory = memory
        self.limit = limit
        self._largest = 0  # frame so far, in bytes
        self.aside = b""
        self.slab: Slab | None = None
        self.start = self.end = self.body = 0

    def bound(self, limit: int) -> None:
        """No frame is longer from now on."""
        assert SMALLEST_FRAME <= limit <= len(self._memory)
        self.limit = limit

    def room(self) -> memoryview | None:
        """Where the next bytes are to be put; None while the arena has no room."""
        slab = self.slab
        start, end = self.start, self.end
        if slab is None:
            if self.aside or self._admission.is_tight():
                return self._room_aside()
            slab = self._allocate(1)
            if slab is None:
                return self._room_aside()
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
            elif self._admission.in_line and end < start + needed:
                return self._memory[end : start + needed]  # nothing of the next one
        return self._memory[self.end : slab.limit]

    def arrived(self, count: int) -> None:
        """So many bytes were put there."""
        slab = self.slab
        if slab is None:
            kept = len(self.aside)
            assert 0 < count <= ASIDE - kept
            self.aside += bytes(self._admission.aside[kept : kept + count])
        else:
            assert 0 < count <= slab.limit - self.end
            self.end += count

    def settle_bytes(self) -> bool:
        """Move what is kept aside into the arena if it cannot stay there; False: there is no room
        yet. Raises FrameRefused."""
        aside = self.aside
        have = len(aside)
        if have < _PREFIX:
            return True
        length: int = _LENGTH(aside)[0]
        if not SMALLEST_FRAME <= length <= self.limit:
            raise FrameRefused(length, aside[:_PREFIX])
        if have < min(_PREFIX + length, ASIDE):
            return True
        slab = self._allocate(max(have, _PREFIX + length))
        if slab is None:
            return False
        start = slab.position
        self._memory[start : start + have] = aside
        self.slab, self.aside = slab, b""
        self.start, self.end = start, start + have
        return True

    def next(self) -> int:
        """Take the next frame: where it ends, from `body` on; 0 when none is whole yet. Raises
        FrameRefused."""
        start = self.start
        have = self.end - start
        if have < _PREFIX:
            return 0
        length: int = _LENGTH(self._memory, start)[0]
        if not SMALLEST_FRAME <= length <= self.limit:
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
        """True if `next` would take a frame. Raises FrameRefused."""
        start, body = self.start, self.body
        found = self.next()
        self.start, self.body = start, body
        return found != 0

    def unfinished(self) -> int:
        """Bytes that have arrived of a frame that is not taken."""
        return self.end - self.start + len(self.aside)

    def claimed(self) -> int:
        """Bytes of the frame that is arriving, 0 where that is not known."""
        if self.end - self.start >= _PREFIX:
            return _PREFIX + int(_LENGTH(self._memory, self.start)[0])
        return _PREFIX + int(_LENGTH(self.aside)[0]) if len(self.aside) >= _PREFIX else 0

    def is_whole(self) -> bool:
        """All of a frame has arrived, or of something that is refused."""
        return self.claimed() != 0 and self.unfinished() >= self.claimed()

    def asks(self) -> int:
        """Bytes of memory that it needs."""
        return max(self.unfinished(), self.claimed())

    def received(self) -> bytes:
        """Bytes that have arrived and are not taken."""
        return self.aside or bytes(self._memory[self.start : self.end])

    def adopt(self, received: bytes) -> None:
        """Begin with bytes that arrived elsewhere."""
        assert self.slab is None and not self.aside, "bytes that came later are before these"
        self.aside = received

    def rest(self) -> None:
        """Give the memory back if nothing is in it, or little enough to be kept aside."""
        have = self.end - self.start
        if self.slab is not None and have < ASIDE and (not have or have < self.claimed()):
            self._put_aside()

    def drop(self) -> None:
        """Forget everything that has arrived; memory that requests in flight use stays theirs."""
        slab = self.slab
        self.aside = b""
        if slab is not None:
            self._admission.leave(slab, self._share)
            self.slab = None
            self.start = self.end = 0

    def _room_aside(self) -> memoryview | None:
        kept = len(self.aside)
        return self._admission.aside[kept:] if kept < ASIDE else None

    def _needed(self) -> int:
        """Bytes from `start` on in which the frame that is arriving fits, or its first ones while
        its sender has shown little."""
        have = self.end - self.start
        if have < _PREFIX:
            return have + 1
        length: int = _LENGTH(self._memory, self.start)[0]
        if have >= SHOWN or length <= _GROWTH * self._largest:
            return max(have + 1, _PREFIX + length)
        return max(have + 1, min(_PREFIX + length, SHOWN))

    def _allocate(self, needed: int) -> Slab | None:
        wanted = preferred_size(self._largest, len(self._memory))
        return self._admission.allocate(max(wanted, needed), needed, self._share)

    def _put_aside(self) -> None:
        """Keep outside the arena what has arrived: who waits for memory holds none of it."""
        aside = bytes(self._memory[self.start : self.end])
        self.drop()
        self.aside = aside

    def _move(self, needed: int) -> Slab | None:
        """Go to a slab of so many bytes, or of what is better; None: what has arrived is aside."""
        old = self.slab
        assert old is not None
        have = self.end - self.start
        slab = self._allocate(needed)
        if slab is None:
            self._put_aside()
            return None
        target = slab.position
        memory = self._memory
        memory[target : target + have] = memory[self.start : self.end]
        self._admission.leave(old, self._share)
        self.slab = slab
        self.start, self.end = target, target + have
        return slab
