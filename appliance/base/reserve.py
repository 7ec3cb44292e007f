"""Room that is set aside in each log folder, so that what must be written on a full disk can be.

A file of real blocks, `penstock.reserve`. When a write of ours finds no room, a slice of it is
given back to the file system and the write is tried again: metadata, checkpoints, offsets of
groups and new names come through, so that topics can be deleted, retention shortened and a start
made while the disk is full. Records of clients, compaction, moves, snapshots and the history never
draw on it.
Invariant: nobody but control makes the file longer, and only while there is room; whoever needs
room makes it shorter.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from appliance.base.disk import Disk, File, Readable, Space, Writable
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.ids import INTERNAL_TOPICS, METADATA_TOPIC

RESERVE: Final = "penstock.reserve"
SLICE: Final = 64 << 10
_PART: Final = 64  # of the file system
LEAST: Final = 2 << 20
_MOST: Final = 8 << 20
_STEP: Final = 4 << 20
_FOR_VOTES: Final = 2 * SLICE
"""What is left of it is for `quorum-state` alone: a voter without room for anything else votes for
one that has some."""

_VOTE: Final = re.compile(r"/quorum-state(\.tmp)?\Z")
_SEGMENT: Final = re.compile(r"/(.+)-\d+/[^/]+\.log\Z")
_CAN_WAIT: Final = re.compile(
    r"-future/|\.checkpoint(\.tmp)?\Z|/penstock\.history\Z|\.(cleaned|swap|snapshot)\b"
)

T = TypeVar("T")


def size_for(total: int) -> int:
    """How large the reserve of a file system of `total` bytes is to be."""
    return min(max(total // _PART, LEAST), _MOST)


def left(disk: Disk, folder: str) -> int:
    """Bytes of the reserve in this log folder."""
    path = f"{folder}/{RESERVE}"
    try:
        return disk.size(path) if disk.exists(path) else 0
    except StorageFailed:
        return 0


def spare(disk: Disk, folder: str, total: int) -> int:
    """How many bytes of it groups may use: one half is for what frees room."""
    return max(left(disk, folder) - size_for(total) // 2, 0)


def give_slice(disk: Disk, folder: str, keep: int = 0) -> bool:
    """Give a slice of the reserve back to the file system; False when there is none but what is to
    be kept."""
    size = left(disk, folder)
    if size <= keep:
        return False
    try:
        file = disk.open_file(f"{folder}/{RESERVE}", write=True)
        try:
            file.truncate(max(size - SLICE, 0))
            file.sync()  # a journal may keep the blocks until then
        finally:
            file.close()
    except StorageFailed:
        return False
    return True


def fill(disk: Disk, folder: str, total: int) -> bool:
    """Make the reserve longer, by one step; whether it has its size then. Raises StorageFailed
    where room cannot be set aside."""
    path, size, wanted = f"{folder}/{RESERVE}", left(disk, folder), size_for(total)
    if size < wanted:
        file = disk.open_file(path, write=True) if disk.exists(path) else disk.create(path)
        try:
            size = min(size + _STEP, wanted)
            file.allocate(size)
        finally:
            file.close()
    return size >= wanted


def may_draw(path: str) -> bool:
    """True if writes to this file may use the reserve."""
    if _CAN_WAIT.search(path):
        return False
    segment = _SEGMENT.search(path)
    if segment is None:
        return True
    topic = segment[1].rpartition("/")[2]
    return topic == METADATA_TOPIC or topic in INTERNAL_TOPICS


class ReservedFile:
    """A file whose writes may use the reserve."""

    __slots__ = ("_disk", "_file", "path")

    def __init__(self, disk: "ReservedDisk", file: File) -> None:
        self._disk = disk
        self._file = file
        self.path = file.path

    def pwritev(self, buffers: Sequence[Readable], position: int) -> None:
        self._disk.with_room(self.path, lambda: self._file.pwritev(buffers, position))

    def pread(self, length: int, position: int) -> bytes:
        return self._file.pread(length, position)

    def preadinto(self, buffer: Writable, position: int) -> int:
        return self._file.preadinto(buffer, position)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def allocate(self, size: int) -> None:
        self._file.allocate(size)

    def sync(self) -> None:
        self._file.sync()

    def pread_medium(self, length: int, position: int) -> bytes:
        return self._file.pread_medium(length, position)

    def pwrite_medium(self, data: Readable, position: int) -> None:
        self._file.pwrite_medium(data, position)

    def drop_cached(self, length: int, position: int) -> None:
        self._file.drop_cached(length, position)

    def start_writeback(self, position: int, length: int) -> None:
        self._file.start_writeback(position, length)

    def size(self) -> int:
        return self._file.size()

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


class ReservedDisk:
    """A Disk that draws on the reserve of the log folder that a path lies in."""

    __slots__ = ("_disk", "_folders")

    def __init__(self, disk: Disk, folders: Sequence[str]) -> None:
        self._disk = disk
        self._folders = sorted(folders, key=len, reverse=True)  # the inner one first

    def with_room(self, path: str, call: Callable[[], T]) -> T:
        """Do it, with more and more of the reserve given back as long as there is no room."""
        while True:
            try:
                return call()
            except DiskFull:
                folder = next((one for one in self._folders if path.startswith(f"{one}/")), "")
                keep = 0 if _VOTE.search(path) else _FOR_VOTES
                if not folder or not may_draw(path) or not give_slice(self._disk, folder, keep):
                    raise

    def _wrapped(self, file: File) -> File:
        return ReservedFile(self, file) if may_draw(file.path) else file

    def create(self, path: str) -> File:
        return self._wrapped(self.with_room(path, lambda: self._disk.create(path)))

    def open_file(self, path: str, *, write: bool = False) -> File:
        file = self._disk.open_file(path, write=write)
        return self._wrapped(file) if write else file

    def mkdir(self, path: str) -> None:
        self.with_room(path, lambda: self._disk.mkdir(path))

    def rename(self, old: str, new: str) -> None:
        self.with_room(new, lambda: self._disk.rename(old, new))

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        if not self._disk.exists(path):
            with suppress(StorageFailed):  # another process may have made it just now
                self.create(path).close()
        with self._disk.lock(path):
            yield

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def size(self, path: str) -> int:
        return self._disk.size(path)

    def modified_ms(self, path: str) -> int:
        return self._disk.modified_ms(path)

    def listdir(self, path: str) -> list[str]:
        return self._disk.listdir(path)

    def rmdir(self, path: str) -> None:
        self._disk.rmdir(path)

    def unlink(self, path: str) -> None:
        self._disk.unlink(path)

    def sync_dir(self, path: str) -> None:
        self._disk.sync_dir(path)

    def space(self, path: str) -> Space:
        return self._disk.space(path)
