"""The newest offset of every key of the part that compaction cleans, in memory that has a limit
(KIP-58's offset map: 16 bytes of digest and 8 of offset for each key).

Keys are noted in a dictionary first, which is fast and drops doubles; what is more than its share
of the memory moves into a table of fixed slots. A short log never needs the table. Invariant: an
offset in the dictionary is newer than the table's of the same key. Caller: `compaction.py`.
"""

from collections.abc import Iterable
from hashlib import blake2b
from mmap import mmap
from struct import Struct
from typing import Final

from appliance.wire.record_keys import Place

SLOT_BYTES: Final = 24
ENTRY_COST: Final = 170
"""Bytes that a key takes in the dictionary besides itself (CPython 3.11, with the room that a
dictionary keeps free)."""

_DIGEST: Final = 16
_NOTHING: Final = bytes(_DIGEST)
_LONGEST_KEY: Final = 32
_RECENT_SHARE: Final = 8
"""The dictionary takes at most one part in so many of the memory before it moves."""

_store_offset = Struct("<q").pack_into
_load_offset = Struct("<q").unpack_from


class OffsetMap:
    """memory: bytes for all keys together. load_factor: how full the table may get, 0 to 1
    (`log.cleaner.io.buffer.load.factor`). The keys of the batch that fills it are noted whole."""

    __slots__ = ("_limit", "_recent", "_recent_bytes", "_recent_limit", "_slots", "_table")

    def __init__(self, memory: int, load_factor: float) -> None:
        self._recent: dict[bytes, int] = {}
        self._recent_bytes = 0
        self._recent_limit = memory // _RECENT_SHARE
        self._slots = _prime_up_to((memory - self._recent_limit) // SLOT_BYTES)
        self._limit = min(int(self._slots * load_factor), self._slots - 1)
        self._table: SlotTable | None = None

    @property
    def full(self) -> bool:
        """True if the next batch must wait for another cleaning."""
        noted = self._table.count if self._table is not None else 0
        return noted + len(self._recent) >= self._limit

    def note_batch(self, places: Iterable[Place], base: int, first_delta: int) -> None:
        """Note the records of a batch from offset `base + first_delta` on. Batches come in the
        order of their offsets."""
        recent, size = self._recent, 0
        before = len(recent)
        for _, _, delta, key, _ in places:
            if key is None or delta < first_delta:
                continue
            if len(key) > _LONGEST_KEY:
                key = long_key_digest(key)
            recent[key] = base + delta
            size = max(size, len(key))
        self._recent_bytes += (len(recent) - before) * (ENTRY_COST + size)
        if self._recent_bytes > self._recent_limit or self.full:
            self._settle()

    def newest(self, key: bytes) -> int:
        """The newest offset noted for a key, -1 for none."""
        if len(key) > _LONGEST_KEY:
            key = long_key_digest(key)
        found = self._recent.get(key, -1)
        if found < 0 and self._table is not None:
            return self._table.offset_of(key)
        return found

    def _settle(self) -> None:
        """Move the dictionary into the table, as far as that has room for all of it."""
        if self._table is None:
            if self._slots < 3:
                return
            self._table = SlotTable(self._slots)
        table = self._table
        if table.count + len(self._recent) >= self._slots:
            return  # the last batch before the end: it stays where it is
        for key, offset in self._recent.items():
            table.set_offset(key, offset)
        self._recent.clear()
        self._recent_bytes = 0


class SlotTable:
    """Open addressing with double hashing. The memory is mapped, not filled: a page costs when its
    first slot is used.
    slots: a prime, at least 3. Invariant: one slot is free, so every search ends."""

    __slots__ = ("_bytes", "_slots", "count")

    def __init__(self, slots: int) -> None:
        assert slots >= 3, f"a table of {slots} slots has no second hash"
        self._slots = slots
        self._bytes = mmap(-1, slots * SLOT_BYTES)
        self.count = 0

    def set_offset(self, key: bytes, offset: int) -> None:
        """Set the offset of a key."""
        digest = _digest(key)
        at, free = self._find(digest)
        if free:
            self.count += 1
            assert self.count < self._slots, "the table is full"
            self._bytes[at : at + _DIGEST] = digest
        _store_offset(self._bytes, at + _DIGEST, offset)

    def offset_of(self, key: bytes) -> int:
        """The offset of a key, -1 for none."""
        at, free = self._find(_digest(key))
        return -1 if free else int(_load_offset(self._bytes, at + _DIGEST)[0])

    def _find(self, digest: bytes) -> tuple[int, bool]:
        """The place of a digest, taken or to be taken, and whether that slot is free."""
        slots, table = self._slots, self._bytes
        number = int.from_bytes(digest[:8], "little") % slots
        step = 0
        while True:
            at = number * SLOT_BYTES
            there = table[at : at + _DIGEST]
            if there == digest:
                return at, False
            if there == _NOTHING:
                return at, True
            if not step:
                step = 1 + int.from_bytes(digest[8:], "little") % (slots - 2)
            number += step
            if number >= slots:
                number -= slots


def long_key_digest(key: bytes) -> bytes:
    """A digest in place of a long key; longer than any short key, so it never equals one."""
    return blake2b(key, digest_size=_LONGEST_KEY + 1).digest()


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST).digest()


def _prime_up_to(most: int) -> int:
    """The largest prime that is not above `most`; 0 below 3, where no table is worth it."""
    for number in range(most, 2, -1):
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            return number
    return 0
