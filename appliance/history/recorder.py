"""Writes samples into the history's file, and knows which name has which number.

Everything here may block, so whoever samples calls it on a thread, one call at a time. The file is
made as long as it will ever be, without room being set aside: what is never written takes none.
Nothing is synced: a history of the last seconds before a power cut is not worth a wait.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Any, Final, NamedTuple

from appliance.base.disk import Disk, File
from appliance.history import format as layout
from appliance.history.format import (
    APIS,
    CLIENTS,
    DISKS,
    ENTRIES,
    LAGS,
    PROCESSES,
    RINGS,
    TABLES,
    TOPICS,
    WHOLE,
    Name,
    NameTable,
    Ring,
    SampleHead,
    UnknownHistory,
    squeeze,
)
from appliance.history.samples import HistorySample

_MOST_MS: Final = 65_535
_PIECE: Final = 1 << 16
"""Bytes that are read of a ring at once."""


class _Wanted(NamedTuple):
    """An entry that is to be written. weight: what goes when there is no room for all. texts: its
    name, () for none. values: what follows the number of the name."""

    weight: float
    texts: tuple[str, ...]
    values: tuple[Any, ...]


class Names:
    """The names of one kind and their numbers. A new one takes the number of the one that was used
    least recently."""

    def __init__(self, table: NameTable, known: Mapping[int, Name]) -> None:
        self._table = table
        self._numbers = {one.digest: number for number, one in known.items()}
        self._digests = {number: one.digest for number, one in known.items()}
        self._used_ms = {number: one.since_ms for number, one in known.items()}
        self._free = [n for n in reversed(range(table.names)) if n not in known]

    def number(self, texts: tuple[str, ...], at_ms: int) -> tuple[int, Name | None]:
        """(number, the name to be written when it is new) for a sample at `at_ms`. All names of one
        moment have different numbers."""
        digest = layout.digest_of(texts)
        number = self._numbers.get(digest)
        fresh = None
        if number is None:
            number = self._free.pop() if self._free else self._idlest(at_ms)
            self._numbers.pop(self._digests.get(number, b""), None)
            self._numbers[digest] = number
            self._digests[number] = digest
            fresh = Name(at_ms, digest, texts)
        self._used_ms[number] = at_ms
        return number, fresh

    def _idlest(self, at_ms: int) -> int:
        return min(
            (number for number, used in self._used_ms.items() if used != at_ms),
            key=lambda number: self._used_ms[number],
        )


class Recorder:
    """The history in one folder. Every method may raise StorageFailed."""

    def __init__(self, disk: Disk, folder: str) -> None:
        """Goes on with what is there, or begins anew where that is no history of this format."""
        path = f"{folder}/{layout.FILE}"
        self._file = _opened(disk, path) or _created(disk, path)
        self._last = {where: _last_number(self._file, ring) for where, ring in RINGS.items()}
        self._names = {
            kind: Names(table, layout.unpack_names(table, _read(self._file, table)))
            for kind, table in TABLES.items()
        }

    def write_sample(self, step: HistorySample) -> None:
        """One sample of everything; the whole comes last, so that who finds it finds the rest."""
        left_out = step.left_out or {}
        for kind, wanted in _entries(step):
            ring = RINGS.get((kind, step.step))
            if ring is not None and (wanted or left_out.get(kind)):
                self._put(ring, step, wanted, left_out.get(kind, 0))
        self._put(RINGS[WHOLE, step.step], step, [_Wanted(0, (), step.whole)], 0)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _put(self, ring: Ring, step: HistorySample, wanted: list[_Wanted], left_out: int) -> None:
        kept = wanted
        if len(wanted) > ring.most:
            kept = nlargest(ring.most, wanted, key=lambda one: one.weight)
        packed = ENTRIES[ring.kind].pack
        names = self._names.get(ring.kind)
        if names is None:
            entries = b"".join(packed(*one.values) for one in kept)
        else:
            numbers = self._numbers(TABLES[ring.kind], names, kept, step.at_ms)
            pairs = zip(numbers, kept, strict=True)
            entries = b"".join(packed(number, *one.values) for number, one in pairs)
        number = self._last[ring.kind, ring.step] + 1
        missing = left_out + len(wanted) - len(kept)
        sample = SampleHead(number, step.at_ms, step.span_ms, missing, entries)
        self._file.pwritev([layout.pack(ring, sample)], layout.slot_at(ring, number))
        self._last[ring.kind, ring.step] = number

    def _numbers(
        self, table: NameTable, names: Names, kept: Sequence[_Wanted], at_ms: int
    ) -> list[int]:
        numbers = []
        for one in kept:
            number, fresh = names.number(one.texts, at_ms)
            if fresh is not None:
                at = table.at + number * table.name_bytes
                self._file.pwritev([layout.pack_name(table, fresh)], at)
            numbers.append(number)
        return numbers


def _entries(step: HistorySample) -> Iterable[tuple[str, list[_Wanted]]]:
    yield APIS, [_Wanted(one.requests, (), one) for one in step.apis]
    yield PROCESSES, [_Wanted(-n, (), one) for n, one in enumerate(step.processes)]
    yield DISKS, [_Wanted(-one.folder, (), one) for one in step.disks]
    yield (
        TOPICS,
        [
            _Wanted(one.bytes_in + one.bytes_out, (name,), tuple(map(squeeze, one)))
            for name, one in (step.topics or {}).items()
        ],
    )
    yield (
        CLIENTS,
        [
            _Wanted(
                one.produced + one.fetched + one.throttled_ms,
                tuple(who),
                (*map(squeeze, one[:3]), min(one.throttled_ms, _MOST_MS)),
            )
            for who, one in (step.clients or {}).items()
        ],
    )
    yield (
        LAGS,
        [_Wanted(behind, who, (behind,)) for who, behind in (step.lags or {}).items()],
    )


def _opened(disk: Disk, path: str) -> File | None:
    """None when there is none that can be gone on with."""
    if not disk.exists(path):
        return None
    file = disk.open_file(path, write=True)
    try:
        layout.check_head(file.pread(layout.HEAD_BYTES, 0))
        if file.size() == layout.BYTES:
            return file
    except UnknownHistory:
        pass
    file.close()
    return None


def _created(disk: Disk, path: str) -> File:
    if disk.exists(path):
        disk.unlink(path)
    file = disk.create(path)
    file.truncate(layout.BYTES)
    file.pwritev([layout.head()], 0)
    return file


def _read(file: File, table: NameTable) -> bytes:
    return file.pread(table.names * table.name_bytes, table.at)


def _last_number(file: File, ring: Ring) -> int:
    """Returns the number of the newest complete sample. A ring has up to 7 MB, which this process
    would keep if it read all of them at once."""
    found = 0
    slots = max(1, _PIECE // ring.slot_bytes)
    for first in range(0, ring.slots, slots):
        count = min(slots, ring.slots - first)
        piece = file.pread(count * ring.slot_bytes, ring.at + first * ring.slot_bytes)
        newest = layout.samples(ring, piece, newest=1)
        found = max(found, newest[0].number if newest else 0)
    return found
