"""A file that makes the ends of many logs durable with one write, before their files are synced.

fdatasync of a file that grew is a commit of the file system's journal, and fifty files are fifty of
them. Small ends are therefore written twice: to their files, as ever, which are synced later and
in the background, and at once, all of a turn in one group, over blocks of this file that are there
already. Where power was cut, an opening continues each log from here (`Continuations`).

Invariant: whatever is durable of a log is a prefix of it: what its own file has synced, and behind
that what groups hold, without a gap. A group stays until the files have synced all of it. One half
of the file is written while the other one waits for that; with no half free there is no room, and
logs are synced one by one.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, Final, NamedTuple

from appliance.base.crc import crc32c
from appliance.base.disk import PAGE, Disk, File
from appliance.base.errors import StorageFailed
from appliance.wire.batch_header import HEADER, LENGTH_PREFIX, MAGIC

SUFFIX: Final = ".journal"
MOST_OF_ONE: Final = 64 << 10
"""Bytes of one log in one group: more are better synced in their own file, once."""
_PART: Final = 64  # of the file system
_LEAST: Final = 1 << 20
_MOST: Final = 16 << 20
_GROUPS: Final = 8  # fill the file, at least

_FILE: Final = Struct("<8s16s")  # magic, nonce
_MAGIC: Final = b"PENSTJRN"
_GROUP: Final = Struct("<16sQIII")  # nonce, sequence, logs, bytes in all, CRC32C of what follows
_TAIL: Final = Struct("<16siiq")  # topic id, partition, bytes, base offset

OF_EACH: Final = _TAIL.size
"""Bytes that a log takes of a group besides its batches."""
assert _LEAST % (2 * PAGE) == 0 == _MOST % (2 * PAGE)
assert _GROUP.size + OF_EACH + MOST_OF_ONE + PAGE <= _LEAST // _GROUPS, "one log fits a group"
assert _LEAST // _GROUPS + PAGE <= _LEAST // 2 - PAGE, "and a group into a half, behind the head"


def size_for(total: int) -> int:
    """How large the journal of a process is in a file system of `total` bytes."""
    size = min(max(total // _PART, _LEAST), _MOST)
    return size - size % (2 * PAGE)


class End(NamedTuple):
    """The end of one log that is to be durable. key: whose it is, for `Journal.settled`. offset to
    end: of its batches, which lie at `position` of `file`, `length` bytes."""

    key: Any
    topic_id: bytes
    partition: int
    offset: int
    end: int
    file: File
    position: int
    length: int


class JournalWrite:
    """One write of the journal, to be run on any thread."""

    __slots__ = ("_journal", "_position", "_sequence", "ends")

    def __init__(
        self, journal: "Journal", ends: Sequence[End], position: int, sequence: int
    ) -> None:
        self._journal = journal
        self._position = position
        self._sequence = sequence
        self.ends = ends

    def run(self) -> None:
        """Return when the ends are durable. Raises StorageFailed, after which the journal is not
        written again and its logs are synced."""
        heads = [
            _TAIL.pack(one.topic_id, one.partition, one.length, one.offset) for one in self.ends
        ]
        bytes_ = [one.file.pread(one.length, one.position) for one in self.ends]
        assert all(len(data) == one.length for data, one in zip(bytes_, self.ends, strict=True))
        body = b"".join((*heads, *bytes_))
        journal = self._journal
        head = _GROUP.pack(journal.nonce, self._sequence, len(heads), len(body), crc32c(body))
        size = len(head) + len(body)
        journal.file.pwrite_medium(b"".join((head, body, bytes(-size % PAGE))), self._position)


class Journal:
    """The journal of one process in one log folder. `create` makes it."""

    __slots__ = (
        "_at",
        "_halves",
        "_sequence",
        "_size",
        "_under_way",
        "failed",
        "file",
        "half",
        "most",
        "nonce",
    )

    def __init__(self, file: File, nonce: bytes, size: int) -> None:
        assert size % (2 * PAGE) == 0 and size >= _LEAST
        self.file = file
        self._size = size
        self.most = size // _GROUPS - _GROUP.size
        self.nonce = nonce
        self.failed = False
        self._sequence = 0
        self.half = 0
        self._at = PAGE
        self._halves: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
        self._under_way: JournalWrite | None = None

    @classmethod
    def create(cls, disk: Disk, path: str, nonce: bytes, size: int) -> "Journal":
        """A new one, of blocks that are written already: takes as long as that. nonce: 16 random
        bytes, so that no client can write what looks like a group. Raises StorageFailed; nothing
        of it is left then."""
        assert len(nonce) == 16
        file = disk.create(path)
        try:
            chunk = bytes(_LEAST)
            for position in range(0, size, len(chunk)):
                file.pwritev([chunk[: size - position]], position)
            file.pwritev([_FILE.pack(_MAGIC, nonce)], 0)
            file.sync()
            disk.sync_dir(path.rpartition("/")[0])
        except StorageFailed:
            file.close()
            with suppress(StorageFailed):
                disk.unlink(path)
            raise
        return cls(file, nonce, size)

    def begin_group(self, ends: Sequence[End]) -> JournalWrite | None:
        """A group of these, to be run, and then `ended`; None: there is no room for it. One at a
        time."""
        assert self._under_way is None and ends
        if self.failed:
            return None
        size = _GROUP.size + sum(_TAIL.size + one.length for one in ends)
        assert size <= self.most, "the caller knows what fits"
        size += -size % PAGE
        if self._at + size > self._limit():
            if self._halves[1 - self.half]:
                return None
            self.half = 1 - self.half
            self._at = self._size // 2 if self.half else PAGE
        assert self._at + size <= self._limit(), "a group is smaller than a half"
        held = self._halves[self.half]
        for one in ends:
            assert one.offset < one.end and 0 < one.length <= MOST_OF_ONE
            held[one.key] = one.end
        self._sequence += 1
        group = self._under_way = JournalWrite(self, ends, self._at, self._sequence)
        self._at += size
        return group

    def _limit(self) -> int:
        return self._size if self.half else self._size // 2

    def ended(self, group: JournalWrite, *, failed: bool) -> None:
        """The group has run, or failed: then this journal takes no more."""
        assert group is self._under_way
        self._under_way = None
        self.failed = self.failed or failed

    def settled(self, key: Any, recovery_point: int) -> None:
        """The log's own files have everything below its recovery point on the disk."""
        for half in self._halves:
            end = half.get(key)
            if end is not None and end <= recovery_point:
                del half[key]

    def unsettled(self) -> list[Any]:
        """The logs that must be synced before the half that is not written now can be reused."""
        return list(self._halves[1 - self.half])

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


class Tail(NamedTuple):
    """Batches that a group holds of one log."""

    topic_id: bytes
    partition: int
    offset: int
    data: bytes


def read(disk: Disk, path: str) -> list[Tail]:
    """Reads the groups of a journal, oldest first; skips what is torn or not ours. Raises
    StorageFailed.
    """
    file = disk.open_file(path)
    try:
        data = memoryview(file.pread_medium(file.size(), 0))
    finally:
        file.close()
    if len(data) < _FILE.size:
        return []
    magic, nonce = _FILE.unpack_from(data)
    if magic != _MAGIC:
        return []
    groups = sorted(_groups(data, nonce), key=lambda group: group[0])
    return [tail for _, tails in groups for tail in tails]


def _groups(data: memoryview, nonce: bytes) -> Iterator[tuple[int, list[Tail]]]:
    at = PAGE
    while at + _GROUP.size <= len(data):
        found, sequence, count, length, crc = _GROUP.unpack_from(data, at)
        body = data[at + _GROUP.size : at + _GROUP.size + length]
        if found == nonce and len(body) == length and crc32c(body) == crc:
            yield sequence, _tails(body, count)
            at += _GROUP.size + length
            at += -at % PAGE
        else:
            at += PAGE


def _tails(body: memoryview, count: int) -> list[Tail]:
    tails = []
    at = count * _TAIL.size
    for number in range(count):
        topic_id, partition, length, offset = _TAIL.unpack_from(body, number * _TAIL.size)
        tails.append(Tail(topic_id, partition, offset, bytes(body[at : at + length])))
        at += length
    assert at == len(body), "the CRC held, so a group is what was written"
    return tails


_NO_EPOCH: Final = -(1 << 31)


class Continuation:
    """Journal contents of one log, by offset. tails: oldest group first."""

    __slots__ = ("_tails",)

    def __init__(self, tails: Sequence[Tail] = ()) -> None:
        self._tails = list(tails)

    def __bool__(self) -> bool:
        return bool(self._tails)

    def after(self, offset: int) -> bytes:
        """The batches from the one with this base offset on, as far as they follow one another;
        nothing when no group has that one. What has an older leader epoch than what lies before it
        was truncated since."""
        pieces = []
        epoch = _NO_EPOCH
        while (piece := self._piece(offset, epoch)) is not None:
            data, offset, epoch = piece
            pieces.append(data)
        return b"".join(pieces)

    def _piece(self, offset: int, epoch: int) -> tuple[bytes, int, int] | None:
        """Batches from one group, the offset behind them and their newest leader epoch. The newest
        group wins."""
        for tail in reversed(self._tails):
            for at, base, end in _batches(tail) if tail.offset <= offset else ():
                if base == offset and HEADER.unpack_from(tail.data, at)[2] >= epoch:
                    *_, last = _batches(tail)
                    assert last[2] >= end
                    return tail.data[at:], last[2], HEADER.unpack_from(tail.data, last[0])[2]
        return None


NOTHING: Final = Continuation()


def _batches(tail: Tail) -> Iterator[tuple[int, int, int]]:
    """Yields position, base offset and next offset of each batch."""
    at = 0
    while at < len(tail.data):
        header = HEADER.unpack_from(tail.data, at)
        assert header[3] == MAGIC, "the CRC held, so these are batches as they were appended"
        yield at, header[0], header[0] + header[6] + 1
        at += header[1] + LENGTH_PREFIX
