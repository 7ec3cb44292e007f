"""How the history of an appliance lies in its file: rings of samples, and tables of names.

    head      magic, format, and a checksum of both
    rings     one for each kind of sample and each step: so many slots of so many bytes
    names     what the samples of topics, clients and groups call by a number

A slot holds one sample: checksum, length, number of the sample, when it ended, how long it took,
how many entries were left out for want of room, then its entries. Samples of a ring are numbered
from 1 on, and number n lies in slot n % slots: the newest overwrites the oldest, the file never
grows. A sample that was torn, by a kill or a power cut, fails its checksum and counts as none. A
kind with nothing to say in a step writes nothing.

A name is valid since a moment: a number that was given to another name says nothing about samples
from before. Whoever changes this module's layout raises FORMAT; a file of another format is begun
anew by the appliance and refused by readers. Written by `recorder`, read by `reading`.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import islice
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

FILE: Final = "penstock.history"
"""Its name in the first log folder."""
FORMAT: Final = 1
SECOND: Final = 1
MINUTE: Final = 60
STEPS: Final = {SECOND: 600, MINUTE: 1440}
"""Length of a sample in seconds → how many of them are kept: ten minutes, and a day."""

WHOLE: Final = "whole"
APIS: Final = "apis"
PROCESSES: Final = "processes"
DISKS: Final = "disks"
TOPICS: Final = "topics"
CLIENTS: Final = "clients"
LAGS: Final = "lags"

ENTRIES: Final = {
    WHOLE: Struct("<12Q"),
    APIS: Struct("<HIIIII"),
    PROCESSES: Struct("<BBBxIfII"),
    DISKS: Struct("<BQQQ"),
    TOPICS: Struct("<HHHH"),
    CLIENTS: Struct("<HHHHH"),
    LAGS: Struct("<Hf"),
}
"""One entry of each kind; of topics, clients and lags the first number is that of a name."""

_PAGE: Final = 4096
_HEAD: Final = Struct("<8sII")
HEAD_BYTES: Final = _HEAD.size
_MAGIC: Final = b"penstock"
_SLOT: Final = Struct("<IIQQII")
_NAME: Final = Struct("<IHxxQ8s")
assert (_SLOT.size, _NAME.size) == (32, 24)

MOST_BYTES: Final = 16_000_000
"""More the file never has."""


class Ring(NamedTuple):
    """Where the samples of one kind and step lie. at: of its first slot in the file."""

    kind: str
    step: int
    slots: int
    slot_bytes: int
    at: int

    @property
    def most(self) -> int:
        """How many entries a sample holds."""
        return (self.slot_bytes - _SLOT.size) // ENTRIES[self.kind].size


class NameTable(NamedTuple):
    """Where the names of one kind lie."""

    kind: str
    names: int
    name_bytes: int
    at: int


class SampleHead(NamedTuple):
    """number: in its ring. at_ms: wall clock, when it ended. span_ms: how long it took. left_out:
    entries for which there was no room, the least active ones. entries: packed."""

    number: int
    at_ms: int
    span_ms: int
    left_out: int
    entries: bytes


class Name(NamedTuple):
    """since_ms: samples that ended before are about another one. texts: cut when they are long;
    digest: of them as they are."""

    since_ms: int
    digest: bytes
    texts: tuple[str, ...]


_ROOM: Final = {
    (WHOLE, SECOND): 128,
    (WHOLE, MINUTE): 128,
    (APIS, SECOND): 736,
    (APIS, MINUTE): 736,
    (PROCESSES, SECOND): 272,
    (PROCESSES, MINUTE): 272,
    (DISKS, SECOND): 128,
    (DISKS, MINUTE): 256,
    (TOPICS, SECOND): 2048,
    (TOPICS, MINUTE): 4832,
    (CLIENTS, SECOND): 2048,
    (LAGS, MINUTE): 2048,
}
"""Bytes of a slot: at most 32 APIs, 12 processes, 252 topics in a second and 600 in a minute, 201
clients, 336 groups' topics."""
_NAMES: Final = {TOPICS: (1024, 288), CLIENTS: (512, 320), LAGS: (512, 544)}


def _rings() -> dict[tuple[str, int], Ring]:
    found = {}
    at = _PAGE
    for (kind, step), size in _ROOM.items():
        found[kind, step] = Ring(kind, step, STEPS[step], size, at)
        at += STEPS[step] * size
    return found


RINGS: Final = _rings()


def _tables() -> dict[str, NameTable]:
    found = {}
    at = max(ring.at + ring.slots * ring.slot_bytes for ring in RINGS.values())
    for kind, (names, size) in _NAMES.items():
        found[kind] = NameTable(kind, names, size, at)
        at += names * size
    return found


TABLES: Final = _tables()
BYTES: Final = max(table.at + table.names * table.name_bytes for table in TABLES.values())

assert BYTES <= MOST_BYTES, "the history has its bound"
assert all(ring.slot_bytes >= _SLOT.size + ENTRIES[ring.kind].size for ring in RINGS.values())
assert all(
    ring.most <= TABLES[ring.kind].names for ring in RINGS.values() if ring.kind in TABLES
), "each entry of a sample has a name"


class UnknownHistory(ValueError):
    """The file is none, or one of another format; the text says which."""


# Head -----------------------------------------------------------------------------------------


def head() -> bytes:
    """The bytes at the start of the file."""
    told = _HEAD.pack(_MAGIC, FORMAT, 0)
    return _HEAD.pack(_MAGIC, FORMAT, crc32(told))


def check_head(data: bytes) -> None:
    """Raises UnknownHistory."""
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise UnknownHistory("it is no history of an appliance")
    _, version, crc = _HEAD.unpack_from(data)
    if version != FORMAT:
        raise UnknownHistory(f"it has format {version}, this program reads {FORMAT}")
    if crc != crc32(_HEAD.pack(_MAGIC, version, 0)):
        raise UnknownHistory("its head is damaged")


# Samples --------------------------------------------------------------------------------------


def slot_at(ring: Ring, number: int) -> int:
    """Where the sample of this number lies in the file."""
    return ring.at + number % ring.slots * ring.slot_bytes


def pack(ring: Ring, sample: SampleHead) -> bytes:
    """The bytes of a slot, as many as it takes."""
    size = len(sample.entries)
    assert sample.number > 0 and size <= ring.slot_bytes - _SLOT.size
    told = _SLOT.pack(0, size, *sample[:4])[4:] + sample.entries
    return crc32(told).to_bytes(4, "little") + told


def unpack(ring: Ring, data: bytes, at: int = 0) -> SampleHead | None:
    """The sample of the slot at data[at:], None where there is none that is whole."""
    crc, size, number, at_ms, span_ms, left_out = _SLOT.unpack_from(data, at)
    if not number or size > ring.slot_bytes - _SLOT.size:
        return None
    end = at + _SLOT.size + size
    if crc32(memoryview(data)[at + 4 : end]) != crc:
        return None
    return SampleHead(number, at_ms, span_ms, left_out, data[at + _SLOT.size : end])


def samples(ring: Ring, data: bytes, newest: int = 0) -> list[SampleHead]:
    """The samples of a ring's bytes, the oldest first. newest: so many at most, 0 for all."""
    found = list(islice(_backwards(ring, data), newest or None))
    found.reverse()
    return found


def _backwards(ring: Ring, data: bytes) -> Iterator[SampleHead]:
    """Those that are whole, the newest first; a checksum is made when its sample is wanted."""
    places = range(0, len(data) - ring.slot_bytes + 1, ring.slot_bytes)
    numbers = ((_SLOT.unpack_from(data, at)[2], at) for at in places)
    for _, at in sorted(numbers, reverse=True):
        sample = unpack(ring, data, at)
        if sample is not None:
            yield sample


# Names ----------------------------------------------------------------------------------------


def digest_of(texts: Sequence[str]) -> bytes:
    """Returns a digest that distinguishes names of any length."""
    parts = [text.encode(errors="surrogatepass") for text in texts]
    lengths = b"".join(len(part).to_bytes(4, "little") for part in parts)
    return blake2b(lengths + b"".join(parts), digest_size=8).digest()


def pack_name(table: NameTable, name: Name) -> bytes:
    """The bytes of a name: texts too long for the room are cut in equal parts."""
    room = table.name_bytes - _NAME.size
    parts = [text.replace("\0", " ").encode(errors="replace") for text in name.texts]
    share = (room - len(parts) + 1) // len(parts)
    if sum(map(len, parts)) + len(parts) - 1 > room:
        parts = [part[:share] for part in parts]
    told = b"\0".join(parts)
    rest = _NAME.pack(0, len(told), name.since_ms, name.digest)[4:] + told
    return crc32(rest).to_bytes(4, "little") + rest


def unpack_names(table: NameTable, data: bytes) -> dict[int, Name]:
    """Number → name, of those that are whole in a table's bytes."""
    found = {}
    for number in range(len(data) // table.name_bytes):
        at = number * table.name_bytes
        crc, size, since_ms, digest = _NAME.unpack_from(data, at)
        end = at + _NAME.size + size
        if not since_ms or size > table.name_bytes - _NAME.size:
            continue
        if crc32(memoryview(data)[at + 4 : end]) == crc:
            texts = data[at + _NAME.size : end].decode(errors="replace").split("\0")
            found[number] = Name(since_ms, digest, tuple(texts))
    return found


# Amounts --------------------------------------------------------------------------------------

_FINE: Final = 1024
_TOP: Final = 65_535


def squeeze(amount: int) -> int:
    """An amount below 2^63 in 16 bits: its logarithm. Below 1,500 it is exact, above to 0.07 %."""
    return min(round(math.log2(1 + amount) * _FINE), _TOP) if amount > 0 else 0


@cache
def spread(code: int) -> int:
    """The amount that `squeeze` made `code` of, nearly."""
    return round(2 ** (code / _FINE)) - 1
