"""Reading a log's folder through, to find out what in it is damaged: a value machine over the Disk
door, which changes nothing and needs no opened log.

Segments are read from the medium, past the page cache: what readers have there stays, and what the
disk has is seen, not what is remembered of it. Invariant: what lies at or behind `end` of a log
that is being written is not looked at. Called by `penstock storage verify`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from appliance.base.crc import crc32c
from appliance.base.disk import PAGE, Disk, File, read_file
from appliance.logstore import files
from appliance.logstore.derived import Derived
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.format_upgrade import OldSegmentWalk, begins_old
from appliance.logstore.producer_snapshot import decode_snapshot
from appliance.logstore.scan import HeaderFields
from appliance.wire.batch_header import ATTRIBUTES_AT, HEADER, HEADER_SIZE, LENGTH_PREFIX, MAGIC

_CHUNK: Final = 1 << 20
_SHORTEST: Final = HEADER_SIZE - LENGTH_PREFIX
_MAGIC_AT: Final = 16
_MAGIC_BYTE: Final = bytes((MAGIC,))
_FARTHEST: Final = 1 << 40
"""Offsets that one damage may have taken, at most: what claims more is no batch."""
ANY: Final = 1 << 62

RECORDS: Final = "records"
HOLE: Final = "hole"
DERIVED: Final = "derived"
TAIL: Final = "tail"


class Damage(NamedTuple):
    """path, position: where, in bytes. kind: RECORDS cannot be read; HOLE: they are not there;
    DERIVED: a file that is made again of the records; TAIL: what the next start cuts off, because
    it was never known to be written. problem: in words. first, last: offsets that readers miss by
    it, -1 where that is not known or there are none. behind: of RECORDS, where the next sound batch
    begins in the file, its size where none follows."""

    path: str
    position: int
    kind: str
    problem: str
    first: int = -1
    last: int = -1
    behind: int = 0


class Looked(NamedTuple):
    """So many bytes of segments more."""

    bytes: int


Found = Damage | Looked


class ScrubbedLog(NamedTuple):
    """Facts of a log from before the scrub. end: behind the last record that is surely whole, ANY
    for a log without a writer. recovery_point: everything below was on the disk. orderly: the last
    appliance stopped in order, so all of it was. gaps: offsets may be missing, because the log is
    or may have been compacted.
    """

    end: int = ANY
    recovery_point: int = 0
    orderly: bool = False
    gaps: bool = True


def segments_of(disk: Disk, folder: str) -> list[tuple[int, int]]:
    """(base offset, bytes) of each segment. Raises StorageFailed."""
    names = [name for name in disk.listdir(folder) if files.offset_of(name, files.LOG) >= 0]
    return [
        (files.offset_of(name, files.LOG), disk.size(f"{folder}/{name}")) for name in sorted(names)
    ]


def scrub(disk: Disk, folder: str, known: ScrubbedLog) -> Iterator[Found]:
    """Everything that is wrong in a partition's folder, in the order of its segments. Raises
    StorageFailed where a file cannot be read."""
    epochs = _Epochs(disk, folder)
    found = segments_of(disk, folder)
    next_offset = found[0][0] if found else 0
    for number, (base, size) in enumerate(found):
        if base >= known.end:
            break
        path = files.stem(folder, base) + files.LOG
        if next_offset < base and not known.gaps:
            text = f"no segment has the offsets {next_offset} to {base - 1}"
            yield Damage(path, 0, HOLE, text, next_offset, base - 1)
        following = found[number + 1][0] if number + 1 < len(found) else ANY
        one = _Segment(disk, folder, base, size, known, following)
        yield from one.read(epochs)
        next_offset = one.next_offset
    if found and next_offset < min(known.recovery_point, known.end):
        path = files.stem(folder, found[-1][0]) + files.LOG
        text = f"the log ends at offset {next_offset}, it was written up to {known.recovery_point}"
        size = found[-1][1]
        lost = next_offset, known.recovery_point - 1
        yield Damage(path, size, RECORDS, text, *lost, behind=size)
    yield from epochs.problems
    yield from _snapshots(disk, folder)


class _Segment:
    """One segment while it is read. following: base offset of the next one, ANY of the last.
    next_offset: behind its last batch."""

    def __init__(
        self, disk: Disk, folder: str, base: int, size: int, known: ScrubbedLog, following: int
    ) -> None:
        self._disk = disk
        self._stem = files.stem(folder, base)
        self._path = self._stem + files.LOG
        self._base, self._size, self._known = base, size, known
        self._following = following
        self.next_offset = base

    def read(self, epochs: "_Epochs") -> Iterator[Found]:
        """Raises StorageFailed."""
        derived = Derived(self._disk, self._stem, self._base, gaps=self._known.gaps)
        position, file = 0, self._disk.open_file(self._path)
        try:
            if begins_old(partial(self._exactly, file), self._size):
                yield from self._old(file)
                return
            while position < self._size and self.next_offset < self._known.end:
                before = position
                batch, problem = self._batch(file, position)
                if problem:
                    damage = self._wrong(file, position, batch, problem)
                    yield damage
                    derived.lost()
                    position = damage.behind
                else:
                    header: HeaderFields = HEADER.unpack_from(batch)
                    if header[0] + header[6] >= self._known.end:
                        break
                    if header[0] > self.next_offset and not self._known.gaps:
                        yield self._hole(position, header[0])
                    derived.batch(position, header, batch)
                    epochs.batch(header)
                    self.next_offset = header[0] + header[6] + 1
                    position += len(batch)
                yield Looked(position - before)
        finally:
            file.close()
        yield Looked(self._size - position)
        whole = position >= self._size and self._following != ANY
        for suffix, at, text in derived.ended(position, whole=whole):
            yield Damage(self._stem + suffix, at, DERIVED, text)

    def _old(self, file: File) -> Iterator[Found]:
        """A segment of message format 0 or 1, which the next start writes anew: its indexes go with
        it, so they are not looked at."""
        position = 0
        while position < self._size and self.next_offset < self._known.end:
            begun = position
            walk = OldSegmentWalk(
                partial(self._exactly, file), self._size, self.next_offset, position
            )
            for _ in walk.entries():
                if walk.position - position >= _CHUNK:
                    yield Looked(walk.position - position)
                    position = walk.position
            yield Looked(walk.position - position)
            position, self.next_offset = walk.position, walk.next_offset
            if walk.problem:
                behind = self._behind_old(file, position)
                damage = self._damage(file, position, behind, walk.problem)
                yield damage
                yield Looked(behind - position)
                position = behind
            assert position > begun
        yield Looked(self._size - position)

    def _behind_old(self, file: File, position: int) -> int:
        """The next sound entry begins where the damaged one says; the end of the file without
        one."""
        head = self._exactly(file, HEADER_SIZE, position)
        length = int.from_bytes(head[8:LENGTH_PREFIX], "big", signed=True) + LENGTH_PREFIX
        behind = position + length
        if length > LENGTH_PREFIX and behind < self._size:
            walk = OldSegmentWalk(
                partial(self._exactly, file), self._size, self.next_offset, behind
            )
            for _ in walk.entries():
                return behind
        return self._size

    def _exactly(self, file: File, length: int, position: int) -> bytes:
        return bytes(self._window(file, position, length)[:length])

    def _hole(self, position: int, base: int) -> Damage:
        text = f"offset {self.next_offset} should follow, it is {base}"
        return Damage(self._path, position, HOLE, text, self.next_offset, base - 1)

    def _batch(self, file: File, position: int) -> tuple[memoryview, str]:
        """The batch there, or as much of it as is to be believed, and what is wrong with it."""
        nothing = memoryview(b"")
        data = self._window(file, position, HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            return nothing, f"the header of a batch is cut off after {len(data)} bytes"
        base, length, _, magic, crc, _, last_delta = HEADER.unpack_from(data)[:7]
        size = length + LENGTH_PREFIX
        if magic != MAGIC or length < _SHORTEST or last_delta < 0 or base < 0:
            return nothing, "there is no batch of format 2"
        if size > self._size - position:
            return nothing, f"a batch of {size} bytes is cut off after {self._size - position}"
        data = self._window(file, position, size)[:size]
        if len(data) < size:
            return nothing, f"a batch of {size} bytes is cut off after {len(data)}"
        if crc32c(data[ATTRIBUTES_AT:]) != crc:
            return data, "the CRC32C of a batch does not match its bytes"
        if base < self.next_offset:
            return data, f"offset {base} comes again, {self.next_offset} should follow"
        if base + last_delta >= self._following:
            return data, f"offset {base} is in the next segment, too"
        return data, ""

    _buffer: bytes = b""
    _from = 0

    def _window(self, file: File, position: int, length: int) -> memoryview:
        """At least so many bytes from there, fewer at the end."""
        at = position - self._from
        if at < 0 or at + length > len(self._buffer):
            self._from = position // PAGE * PAGE
            at = position - self._from
            wanted = max(_CHUNK, -(-(at + length) // PAGE) * PAGE)
            self._buffer = file.pread_medium(wanted, self._from)
        return memoryview(self._buffer)[at : at + self._size - position]

    def _wrong(self, file: File, position: int, batch: memoryview, problem: str) -> Damage:
        """Reports the fault at `position`; the scan continues with the next sound batch."""
        behind = self._goes_on(file, position, position + len(batch) if batch else -1)
        return self._damage(file, position, behind, problem)

    def _damage(self, file: File, position: int, behind: int, problem: str) -> Damage:
        first, known, last = self.next_offset, self._known, -1
        if behind < self._size:
            last = HEADER.unpack_from(self._window(file, behind, HEADER_SIZE))[0] - 1
        elif self._following != ANY:
            last = self._following - 1
        elif known.end != ANY:
            last = known.end - 1
        elif first < known.recovery_point:
            last = known.recovery_point - 1
        self.next_offset = max(first, last + 1)
        above = first >= known.recovery_point and not known.orderly and known.end == ANY
        is_end = behind >= self._size and self._following == ANY
        kind = TAIL if is_end and above else RECORDS
        problem += f"; {behind - position} bytes until the next sound batch"
        if behind >= self._size:
            problem = problem.rpartition(";")[0] + f"; {behind - position} bytes to the file's end"
        lost = (first, last) if last >= first or is_end else (-1, -1)
        return Damage(self._path, position, kind, problem, *lost, behind=behind)

    def _goes_on(self, file: File, position: int, guess: int) -> int:
        """Where the next sound batch begins, the size of the file when none follows. guess: where
        it should, as the damaged one says."""
        if guess >= 0 and (guess >= self._size or self._sound(file, guess, twice=False)):
            return guess
        at = position + 1 + _MAGIC_AT
        while at < self._size:
            if not self._window(file, at, 1):
                break
            found = self._buffer.find(_MAGIC_BYTE, at - self._from)
            if found < 0:
                at = self._from + len(self._buffer)
                continue
            at = self._from + found
            if self._sound(file, at - _MAGIC_AT, twice=True):
                return at - _MAGIC_AT
            at += 1
        return self._size

    def _sound(self, file: File, position: int, *, twice: bool) -> bool:
        """True if a batch that continues the log begins there. twice: require also that the file
        ends with it or another batch follows, because a record's value may look like a batch.
        """
        data = self._window(file, position, HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            return False
        base, *_, delta = HEADER.unpack_from(data)[:7]
        if not self.next_offset <= base < min(self.next_offset + _FARTHEST, self._following):
            return False
        batch, problem = self._batch(file, position)
        if problem:
            return False
        behind = position + len(batch)
        if not twice or behind >= self._size:
            return True
        batch, problem = self._batch(file, behind)
        return not problem and HEADER.unpack_from(batch)[0] > base + delta


class _Epochs:
    """The file of leader epochs against the batches."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._path = f"{folder}/{files.LEADER_EPOCHS}"
        self.problems: list[Damage] = []
        self._latest, self._end = -1, 0
        self._file: LeaderEpochs | None = None
        if disk.exists(self._path):
            self._file = LeaderEpochs.decode(read_file(disk, self._path))
            if self._file is None:
                self._tell(0, "it cannot be read")

    def batch(self, header: HeaderFields) -> None:
        """The next one."""
        base, epoch, before, end = header[0], header[2], self._end, header[0] + header[6] + 1
        self._end = end
        if epoch == self._latest:
            return
        if epoch < self._latest:
            self._tell(base, f"the batch at offset {base} goes back from epoch {self._latest}")
        self._latest = epoch
        file = self._file
        if file is None or not file.starts or base < file.starts[0] or epoch > file.latest:
            return  # derived, and written late
        begins = dict(zip(file.epochs, file.starts, strict=True)).get(epoch, -1)
        if not before <= begins <= base and (before or begins > base):
            told = f"that it begins at {begins}" if begins >= 0 else "nothing about it"
            self._tell(base, f"the batch at offset {base} begins epoch {epoch}, it says {told}")

    def _tell(self, offset: int, text: str) -> None:
        if not self.problems:  # one is as good as all
            self.problems.append(Damage(self._path, 0, DERIVED, text, offset, offset))


def _snapshots(disk: Disk, folder: str) -> Iterator[Damage]:
    """Those of producers."""
    for name in disk.listdir(folder):
        offset = files.offset_of(name, files.SNAPSHOT)
        if offset < 0:
            continue
        path = f"{folder}/{name}"
        if not disk.exists(path):
            continue  # an older one, which went meanwhile
        states = decode_snapshot(read_file(disk, path), 0)
        if states is None:
            yield Damage(path, 0, DERIVED, "it is cut off, has a wrong CRC32C or another version")
            continue
        for producer, state in states.producers.items():
            if state.batches and state.batches[-1][1] >= offset:
                text = f"producer {producer} has written offset {state.batches[-1][1]}, behind it"
                yield Damage(path, 0, DERIVED, text)
                break
