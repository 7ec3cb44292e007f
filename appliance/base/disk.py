"""The doors through which the disk comes in: a Disk of named files and folders, a File of bytes.

Everything that stores takes a Disk as an argument; `os_disk` is the machine's own, tests pass one
that forgets what was not synced. Invariant of every implementation: a failed call raises
StorageFailed with the path and errno, and a write has either written all its bytes or raised;
DiskFull, of which some bytes may be behind the old end, when only room was missing. What
survives a power cut: bytes below the size at the last `sync` of a file, names as they were at the
last `sync_dir` of their folder. Nothing else.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from appliance.base.errors import DiskFull

PAGE: Final = 4096
"""Bytes that a page cache keeps or drops together, and that reads past it are aligned to."""

Readable = bytes | bytearray | memoryview
Writable = bytearray | memoryview


class Space(NamedTuple):
    """Bytes of a file system: all of them, and those that are free for us."""

    total: int
    free: int


class File(Protocol):
    """An open file. Positions and lengths in bytes."""

    path: str

    def pwritev(self, buffers: Sequence[Readable], position: int) -> None:
        """Write the buffers one after the other from `position` on, all of them."""
        ...

    def pread(self, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position` on; fewer only at the end of the file."""
        ...

    def preadinto(self, buffer: Writable, position: int) -> int:
        """Fill `buffer` from `position` on; how many bytes there were, fewer only at the end of
        the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes, or lengthen it with zeros."""
        ...

    def allocate(self, size: int) -> None:
        """Set room aside for a file of `size` bytes, and make it that long."""
        ...

    def sync(self) -> None:
        """Return when the bytes and the size are on the disk. May run on another thread than the
        writes."""
        ...

    def pread_medium(self, length: int, position: int) -> bytes:
        """As `pread`, past the page cache: what of it is dirty is written first. Multiples of
        PAGE but for the end of the file."""
        ...

    def pwrite_medium(self, data: Readable, position: int) -> None:
        """Write past the page cache over what the file has there: on the disk at return, whatever
        else of the file is not. Multiples of PAGE."""
        ...

    def drop_cached(self, length: int, position: int) -> None:
        """Drop what the page cache has of these pages and counts as clean. Multiples of PAGE."""
        ...

    def start_writeback(self, position: int, length: int) -> None:
        """Begin to write these bytes to the disk and return at once; `sync` still has to wait."""
        ...

    def size(self) -> int:
        """Bytes in the file now."""
        ...

    def fileno(self) -> int:
        """The operating system's descriptor, -1 where there is none."""
        ...

    def close(self) -> None:
        """Give the descriptor back; a second call does nothing."""
        ...


class Disk(Protocol):
    """Files and folders by path. Every method may raise StorageFailed."""

    def create(self, path: str) -> File:
        """A new empty file for reading and writing; fails when the name is taken."""
        ...

    def open_file(self, path: str, *, write: bool = False) -> File:
        """An existing file."""
        ...

    def exists(self, path: str) -> bool:
        """True if a file or folder has this name."""
        ...

    def size(self, path: str) -> int:
        """Bytes of a file."""
        ...

    def modified_ms(self, path: str) -> int:
        """When a file was last written, wall clock in ms."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        ...

    def mkdir(self, path: str) -> None:
        """A new folder; fails when the name is taken."""
        ...

    def rmdir(self, path: str) -> None:
        """Remove an empty folder."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file or folder another name; a file that has it already is replaced."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file. Open files live on until they are closed."""
        ...

    def sync_dir(self, path: str) -> None:
        """Return when the names in this folder are on the disk."""
        ...

    def space(self, path: str) -> Space:
        """The file system that holds `path`."""
        ...

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Hold an exclusive lock between processes, named by a file that is created if need be;
        waits for it."""
        ...


def read_file(disk: Disk, path: str) -> bytes:
    """All bytes of a small file. Raises StorageFailed."""
    file = disk.open_file(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def write_file(disk: Disk, path: str, data: Readable, *, sync: bool = True, mark: str = "") -> None:
    """Make `path` hold exactly `data`, whole or not at all: a temporary file, renamed over it.

    sync: the bytes are on the disk before they get the name, and the name is on the disk at
    return. Without it a power cut may leave an empty or torn file, the death of the process may
    not. mark: tells the temporary file from that of another thread. Raises StorageFailed.
    """
    temporary = f"{path}{mark}.tmp"
    if disk.exists(temporary):
        disk.unlink(temporary)
    file = disk.create(temporary)
    try:
        file.pwritev([data], 0)
        if sync:
            file.sync()
    except DiskFull:
        disk.unlink(temporary)  # what did find room is needed elsewhere
        raise
    finally:
        file.close()
    disk.rename(temporary, path)
    if sync:
        disk.sync_dir(path.rpartition("/")[0] or "/")
