"""Segments of message formats 0 and 1 are written anew in format 2, before their log is opened.

Apache Kafka left such segments where they were when it was upgraded, and still reads them; here
every reader finds one format. Offsets, times, keys, values and codecs stay, the leader epoch is -1.
Invariant: the old segment is in its place until the new one is whole and on the disk; one rename
puts it there. Indexes go before that, because they would name other positions. A segment with a
damaged entry stays as it is. Callers: recovery, `penstock import`, `penstock storage verify`.
"""

import errno
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from appliance.base.crc import crc32c
from appliance.base.disk import Disk
from appliance.base.errors import CORRUPT_MESSAGE, PeerError, StorageFailed
from appliance.logstore.compacted_segment import SegmentWriter
from appliance.logstore.files import CLEANED, INDEX, LOG, TIME_INDEX, stem
from appliance.wire.batch_header import ATTRIBUTES_AT, HEADER, HEADER_SIZE, MAGIC, MAGIC_AT
from appliance.wire.batch_header import LENGTH_PREFIX as PREFIX
from appliance.wire.message_set import (
    HEAD_SIZE,
    OLD_MAGICS,
    OldEntry,
    convert_entries,
    open_entry,
    read_entry,
)

_CHUNK: Final = 1 << 20
_CAP: Final = 1 << 28
"""Bytes that a stored wrapper may open to: it was checked when it came."""
SIZE_MAX: Final = (1 << 31) - 1
"""Positions in an index are 31 bits."""

Reader = Callable[[int, int], bytes]
"""(length, position): the bytes there, fewer at the end of the file."""


class UpgradedSegment(NamedTuple):
    """base: its offset. size: bytes of the new file. entries: of old formats that it had.
    cut: bytes at the end of the old file that were no entry, and why. end: behind its last
    message."""

    base: int
    size: int
    entries: int
    cut: int
    why: str
    end: int


class OldSegmentWalk:
    """The entries of a segment that begins with an old format: messages, wrappers, batches.

    Each was checked: whole, its checksum right, offsets ascending. `position` and `next_offset` say
    how far it went, `problem` why not further ("" at the end). old: entries of formats 0 and 1.
    position: where it begins, behind which message `next_offset` tells.
    """

    __slots__ = ("_read", "_size", "next_offset", "old", "position", "problem")

    def __init__(self, read: Reader, size: int, next_offset: int, position: int = 0) -> None:
        self._read = read
        self._size = size
        self.position = position
        self.next_offset = next_offset
        self.old = 0
        self.problem = ""

    def entries(self) -> Iterator[OldEntry | bytes]:
        """Messages and wrappers as `OldEntry`, batches of format 2 as their bytes. Raises
        StorageFailed."""
        need = _CHUNK
        while self.position < self._size:
            asked = min(need, self._size - self.position)
            data = self._read(asked, self.position)
            if len(data) < asked:
                self.problem = "the file has lost its end"
                return
            at, need = 0, _CHUNK
            while at < len(data):
                length = self._length(data, at)
                if self.problem:
                    return
                if at + length > len(data):
                    need = max(need, length)
                    break
                entry = self._take(data, at, length)
                if entry is None:
                    return
                at += length
                self.position += length
                yield entry

    def _length(self, data: bytes, at: int) -> int:
        """Bytes of the entry there; `problem` is set where there is none."""
        room = self._size - self.position
        if room < HEAD_SIZE:
            self.problem = "the head of a message is cut off"
            return 0
        if at + HEAD_SIZE > len(data):
            return HEAD_SIZE
        size = int.from_bytes(data[at + 8 : at + PREFIX], "big", signed=True) + PREFIX
        magic = data[at + MAGIC_AT]
        if size < (HEADER_SIZE if magic == MAGIC else HEAD_SIZE) or magic > MAGIC:
            self.problem = "there is no message of format 0, 1 or 2"
        elif size > room:
            self.problem = f"a message of {size} bytes is cut off after {room}"
        return size

    def _take(self, data: bytes, at: int, length: int) -> OldEntry | bytes | None:
        """The whole entry there; None, and `problem`, where it is not sound."""
        entry: OldEntry | bytes
        if data[at + MAGIC_AT] == MAGIC:
            entry = data[at : at + length]
            base, _, _, _, crc, _, delta = HEADER.unpack_from(entry)[:7]
            last = base + delta
            if delta < 0 or crc32c(memoryview(entry)[ATTRIBUTES_AT:]) != crc:
                self.problem = "the CRC32C of a batch does not match its bytes"
        else:
            try:
                entry = read_entry(memoryview(data), at, at + length)
            except PeerError as wrong:
                self.problem = wrong.message
                return None
            base = last = entry.offset
            self.old += 1
        if base < self.next_offset:
            self.problem = f"offset {base} comes again, {self.next_offset} should follow"
        if self.problem:
            return None
        self.next_offset = last + 1
        return entry


def check_segment(read: Reader, size: int, base: int) -> tuple[int, str]:
    """The offset behind the last sound entry of an old segment, and the fault there ("" at the
    end). Raises StorageFailed."""
    walk = OldSegmentWalk(read, size, base)
    for _ in walk.entries():
        pass
    return walk.next_offset, walk.problem


def first_offset(read: Reader, position: int, size: int) -> int:
    """The first offset of the sound entry at `position` of a segment of `size` bytes, of any
    format. Raises StorageFailed, PeerError."""
    for entry in OldSegmentWalk(read, size, 0, position).entries():
        if isinstance(entry, OldEntry):
            return open_entry(entry, _CAP)[0].offset
        return int.from_bytes(entry[:8], "big")
    raise PeerError(CORRUPT_MESSAGE, f"there is no message at byte {position}")


def begins_old(read: Reader, size: int) -> bool:
    """True for a segment of `size` bytes whose first entry is a sound message of format 0 or 1."""
    if size < HEAD_SIZE or (head := read(HEAD_SIZE, 0))[MAGIC_AT] not in OLD_MAGICS:
        return False
    length = int.from_bytes(head[8:PREFIX], "big", signed=True) + PREFIX
    if not HEAD_SIZE <= length <= size:
        return False
    try:
        read_entry(memoryview(read(length, 0)), 0, length)
    except PeerError:
        return False
    return True


def upgrade_folder(
    disk: Disk, folder: str, bases: list[int], interval: int, certain: int, *, each: bool = False
) -> list[UpgradedSegment]:
    """Write the old segments of a log that is not open in format 2; those that were written.

    bases: of all segments, ascending. They are looked at until one begins with format 2, because
    formats rise with offsets, and the last one; each: all are. interval: bytes between index
    entries. certain: what does not hold in the last segment at or above this offset is a torn tail,
    and left out.
    Raises StorageFailed, also for an entry that is damaged: then that segment is as it was.
    """
    old = []
    rising = True
    for base in bases:
        if rising or base == bases[-1]:
            is_old = _is_old(disk, folder, base)
            rising = each or is_old is not False
            old += [base] if is_old else []
    # The oldest one comes last: what a crash cuts is found again.
    return [
        _upgrade(disk, folder, base, interval, certain if base == bases[-1] else 1 << 63)
        for base in reversed(old)
    ][::-1]


def _is_old(disk: Disk, folder: str, base: int) -> bool | None:
    """None for a segment that has nothing yet."""
    path = stem(folder, base) + LOG
    size = disk.size(path)
    if not size:
        return None
    file = disk.open_file(path)
    try:
        return begins_old(file.pread, size)
    finally:
        file.close()


def _upgrade(disk: Disk, folder: str, base: int, interval: int, tail_from: int) -> UpgradedSegment:
    """tail_from: what does not hold from this offset on is left out. Raises StorageFailed."""
    path = stem(folder, base) + LOG
    file = disk.open_file(path)
    size = file.size()
    walk = OldSegmentWalk(file.pread, size, base)
    writer = SegmentWriter(disk, folder, base, interval)
    try:
        for batch in _converted(walk):
            writer.add(batch)
        if walk.problem and walk.next_offset < tail_from:
            raise PeerError(CORRUPT_MESSAGE, walk.problem)
        written = writer.finish()
        if written.size > SIZE_MAX:
            raise PeerError(
                CORRUPT_MESSAGE, f"in format 2 it has {written.size} bytes, of at most {SIZE_MAX}"
            )
    except PeerError as wrong:
        disk.unlink(path + CLEANED)
        text = f"corrupt at byte {walk.position}, about offset {walk.next_offset}: {wrong.message}"
        raise StorageFailed(path, errno.EBADMSG, text) from None
    finally:
        writer.close()
        file.close()
    _exchange(disk, folder, base)
    cut = size - walk.position
    return UpgradedSegment(base, written.size, walk.old, cut, walk.problem, walk.next_offset)


def _converted(walk: OldSegmentWalk) -> Iterator[bytes]:
    for is_batch, run in groupby(walk.entries(), lambda entry: isinstance(entry, bytes)):
        if is_batch:
            yield from (entry for entry in run if isinstance(entry, bytes))
        else:
            old = (entry for entry in run if isinstance(entry, OldEntry))
            yield from convert_entries(old, _CAP)


def _exchange(disk: Disk, folder: str, base: int) -> None:
    """Put what was written in the place of the old segment. The index of aborted transactions
    stays: offsets are the same."""
    for suffix in (INDEX, TIME_INDEX):
        if disk.exists(stem(folder, base) + suffix):
            disk.unlink(stem(folder, base) + suffix)
    disk.sync_dir(folder)
    for suffix in (LOG, INDEX, TIME_INDEX):
        path = stem(folder, base) + suffix
        disk.rename(path + CLEANED, path)
    disk.sync_dir(folder)
