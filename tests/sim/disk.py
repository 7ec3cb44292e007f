"""A Disk in memory that can lose power: what was not synced is lost, or kept in part, by chance.

What a cut may do to a file: any 4 KiB page written since the last sync is kept or not, the size is
the old one, the new one or one between; bytes that never arrived read as zeros. What it may do to
a folder: the changes since its last sync are kept up to a point and lost from there on, each folder
for itself. `crash_at` stops the world before the n-th change; a write it hits arrives in part.

What a sync that fails does is what Linux does: some of the pages arrived, the others count as clean
from then on. They can be read, the next sync succeeds without them, and whenever the kernel wants
their memory (here: when a process dies) the old bytes are back. A cut takes them for sure. What is
written into one that the disk never had is lost with it (as with ext4, which leaves its block
marked as never written), until it was dropped and is written again.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from appliance.base.disk import Readable, Space, Writable
from appliance.base.errors import DiskFull, StorageFailed

PAGE = 4096


class PowerCut(BaseException):
    """The world ends here; not an Exception, so that nothing under test can handle it."""


class Inode:
    """synced: the bytes that a cut cannot take. lost: pages that count as clean and are not on the
    disk. never: those of them that never were. torn: whether a cut has taken some of it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = b""
        self.lost: set[int] = set()
        self.never: set[int] = set()
        self.modified_ms = 0
        self.torn = False

    def pages(self) -> int:
        return 1 + -(-len(self.data) // PAGE)

    def write(self, data: bytes, position: int) -> None:
        end = position + len(data)
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
        self.data[position:end] = data
        pages = set(range(position // PAGE, -(-end // PAGE)))
        self.lost -= pages - self.never

    def write_synced(self, data: bytes, position: int) -> None:
        self.synced = self.synced[:position] + data + self.synced[position + len(data) :]

    def truncate(self, size: int) -> None:
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))
        self.lost = {page for page in self.lost if (page + 1) * PAGE <= size}
        self.never &= self.lost

    def sync(self) -> None:
        self.synced = self._merged(self.lost, len(self.data)) if self.lost else bytes(self.data)

    def sync_failed(self, rng: Random) -> None:
        dirty = {
            page
            for page in range(-(-len(self.data) // PAGE))
            if self._page(self.data, page) != self._page(self.synced, page)
        }
        self.lost |= {page for page in dirty if rng.random() < 0.7}
        self.never |= {page for page in self.lost if page * PAGE >= len(self.synced)}
        size = rng.choice((len(self.data), max(len(self.synced), len(self.data) // 2)))
        self.synced = self._merged(self.lost, size)

    def evict(self, rng: Random) -> None:
        """The kernel wants memory: clean pages are read again when they are needed."""
        self.drop({page for page in self.lost if rng.random() < 0.7})

    def drop(self, gone: set[int]) -> None:
        for page in gone:
            end = min((page + 1) * PAGE, len(self.data))
            self.data[page * PAGE : end] = self._page(self.synced, page)[: end - page * PAGE]
        self.lost -= gone
        self.never -= gone

    def would_change(self) -> bool:
        """Whether a reader would find other bytes once clean pages are dropped."""
        for page in self.lost:
            there = bytes(self.data[page * PAGE : (page + 1) * PAGE])
            if there != self._page(self.synced, page)[: len(there)]:
                return True
        return False

    def _page(self, data: bytes | bytearray, page: int) -> bytes:
        return bytes(data[page * PAGE : (page + 1) * PAGE]).ljust(PAGE, b"\0")

    def _merged(self, old: set[int], size: int) -> bytes:
        """`size` bytes: these pages as they are on the disk, the others as they should be."""
        pages = range(-(-size // PAGE))
        merged = [self._page(self.synced if n in old else self.data, n) for n in pages]
        return b"".join(merged)[:size]

    def after_cut(self, rng: Random) -> None:
        new, old = bytes(self.data), self.synced
        low, high = sorted((len(new), len(old)))
        size = rng.choice((len(old), len(new), rng.randint(low, high)))
        keep = rng.random()
        kept = bytearray()
        for at in range(0, size, PAGE):
            arrived = rng.random() < keep and at // PAGE not in self.lost
            page = (new if arrived else old)[at : min(at + PAGE, size)]
            kept += page.ljust(min(PAGE, size - at), b"\0")
        self.torn = kept != self.data
        self.data = kept
        self.synced = bytes(kept)
        self.lost.clear()
        self.never.clear()


class Folder:
    """durable: the names that a cut cannot take; pending: changes since then, oldest first."""

    def __init__(self) -> None:
        self.names: dict[str, Inode | Folder] = {}
        self.durable: dict[str, Inode | Folder] = {}
        self.pending: list[tuple[str, str, Inode | Folder | None]] = []

    def pages(self) -> int:
        return 1

    def nodes(self) -> "Iterator[Inode | Folder]":
        for node in self.names.values():
            yield node
            if isinstance(node, Folder):
                yield from node.nodes()

    def set(self, name: str, node: "Inode | Folder | None", old: str = "") -> None:
        self.pending.append((name, old, node))
        self._apply(self.names, name, old, node)

    @staticmethod
    def _apply(names, name, old, node) -> None:
        if old:
            names.pop(old, None)
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node

    def evict(self, rng: Random) -> None:
        for node in self.names.values():
            node.evict(rng)

    def after_cut(self, rng: Random) -> None:
        names = dict(self.durable)
        for name, old, node in self.pending[: rng.randint(0, len(self.pending))]:
            self._apply(names, name, old, node)
        self.names, self.durable, self.pending = names, dict(names), []
        for node in names.values():
            node.after_cut(rng)


class SimFile:
    def __init__(self, disk: "SimDisk", path: str, inode: Inode, *, write: bool) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._write = write
        self.closed = False
        disk.open_files += 1

    def pwritev(self, buffers: Sequence[Readable], position: int) -> None:
        assert self._write and not self.closed
        data = b"".join(buffers)
        try:
            cut = self._disk.step(self.path, "write")
        except StorageFailed:
            self._inode.write(data[: self._disk.rng.randint(0, len(data))], position)
            raise
        if cut:
            data = data[: self._disk.rng.randint(0, len(data))]
        inode = self._inode
        fits = max(position, len(inode.data) + self._disk.slack(inode)) - position
        lacks = len(data) > fits
        inode.write(data[:fits], position)
        inode.modified_ms = self._disk.now_ms
        self._disk.end_if_cut()
        if lacks:
            self._disk.reached("the disk is full")
            raise DiskFull(self.path, errno.ENOSPC, "No space left on device")

    def pread(self, length: int, position: int) -> bytes:
        assert not self.closed
        self._disk.refuse(self.path, "read")
        return bytes(self._inode.data[position : position + length])

    def preadinto(self, buffer: Writable, position: int) -> int:
        data = self.pread(len(buffer), position)
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def truncate(self, size: int) -> None:
        assert self._write and not self.closed
        if size != len(self._inode.data):
            if self._inode.torn and size < len(self._inode.data) and self.path.endswith(".log"):
                self._disk.reached("a torn tail is cut off")
                self._inode.torn = False
            self._disk.change(self.path, "truncate")
            self._inode.truncate(size)

    def allocate(self, size: int) -> None:
        grown = size - len(self._inode.data)
        if grown > self._disk.slack(self._inode):
            raise DiskFull(self.path, errno.ENOSPC, "No space left on device")
        self._inode.data.extend(bytes(max(grown, 0)))

    def sync(self) -> None:
        assert not self.closed
        try:
            self._disk.change(self.path, "sync")
        except StorageFailed:
            self._inode.sync_failed(self._disk.rng)
            self._disk.reached("a sync fails")
            raise
        self._inode.sync()

    def pread_medium(self, length: int, position: int) -> bytes:
        assert position % PAGE == 0
        self.sync()
        return bytes(self._inode.synced[position : position + length])

    def pwrite_medium(self, data: Readable, position: int) -> None:
        assert self._write and not self.closed
        assert position % PAGE == 0 == len(data) % PAGE
        assert position + len(data) <= len(self._inode.synced), "over what is there"
        if self._disk.step(self.path, "pwrite_medium"):
            data = data[: self._disk.rng.randint(0, len(data) // PAGE) * PAGE]
        self._inode.write(data, position)
        self._inode.write_synced(data, position)
        self._disk.end_if_cut()

    def drop_cached(self, length: int, position: int) -> None:
        named = range(position // PAGE, -(-(position + length) // PAGE))
        self._inode.drop(self._inode.lost.intersection(named))

    def start_writeback(self, position: int, length: int) -> None:
        assert position >= 0 and position + length <= self.size()

    def size(self) -> int:
        assert not self.closed
        return len(self._inode.data)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._disk.open_files -= 1


class SimDisk:
    """rng: chance. refusing: (part of a path, kind of call) → errno to fail it with. capacity:
    bytes, and foreign: those that other programs have taken of them. failing: the chance that a
    sync of a file fails. reached: is told of what is rare."""

    def __init__(self, rng: Random | None = None) -> None:
        self.rng = rng or Random(0)
        self.root = Folder()
        self.steps = 0
        self.crash_at = -1
        self.open_files = 0
        self.now_ms = 0
        self.refusing: dict[tuple[str, str], int] = {}
        self.capacity = 1 << 40
        self.foreign = 0
        self.failing = 0.0
        self.reached = lambda _: None

    def would_change(self, path: str) -> bool:
        """Whether a file is read as it is only until the kernel wants its memory."""
        node = self._node(path)
        assert isinstance(node, Inode)
        return node.would_change()

    def used(self) -> int:
        """Bytes that files and folders take, in whole pages."""
        return sum(node.pages() for node in self.root.nodes()) * PAGE

    def free(self) -> int:
        return max(0, self.capacity - self.foreign - self.used())

    def slack(self, inode: Inode) -> int:
        """By how many bytes a file can grow."""
        if self.capacity == 1 << 40 and not self.foreign:
            return self.capacity
        return self.free() + -len(inode.data) % PAGE

    def take_a_page(self, path: str) -> None:
        if self.slack(Inode()) < PAGE:
            raise DiskFull(path, errno.ENOSPC, "No space left on device")

    def power_cut(self, rng: Random | None = None) -> None:
        """Everything that was not synced is at the mercy of `rng`; the machine starts again."""
        self.root.after_cut(rng or self.rng)
        self.process_death()

    def process_death(self) -> None:
        """The page cache lives on, what the kernel believes to be clean perhaps not; descriptors do
        not."""
        self.root.evict(self.rng)
        self.crash_at = -1
        self.open_files = 0

    def step(self, path: str, kind: str) -> bool:
        """Count one change; whether it is the one that the cut hits."""
        self.refuse(path, kind)
        self.steps += 1
        return self.steps == self.crash_at

    def change(self, path: str, kind: str) -> None:
        self.step(path, kind)
        self.end_if_cut()

    def end_if_cut(self) -> None:
        if self.steps == self.crash_at:
            self.reached("a life ends in the middle of a change")
            raise PowerCut

    def refuse(self, path: str, kind: str) -> None:
        for (part, what), number in self.refusing.items():
            if part in path and what == kind:
                room = number == errno.ENOSPC and what not in ("sync", "sync_dir", "read")
                kind = DiskFull if room else StorageFailed
                raise kind(path, number, "refused as the test wants")
        if kind == "sync" and self.failing and self.rng.random() < self.failing:
            raise StorageFailed(path, errno.EIO, "failed by chance")

    def _folder(self, path: str) -> Folder:
        node = self._node(path)
        if not isinstance(node, Folder):
            raise StorageFailed(path, errno.ENOTDIR, "not a folder")
        return node

    def _node(self, path: str) -> "Inode | Folder":
        node: Inode | Folder = self.root
        for name in path.strip("/").split("/") if path.strip("/") else ():
            if not isinstance(node, Folder) or name not in node.names:
                raise StorageFailed(path, errno.ENOENT, "there is no such file")
            node = node.names[name]
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        return self._folder(parent), name

    def create(self, path: str) -> SimFile:
        folder, name = self._place(path)
        if name in folder.names:
            raise StorageFailed(path, errno.EEXIST, "the name is taken")
        self.take_a_page(path)
        self.change(path, "create")
        inode = Inode()
        folder.set(name, inode)
        return SimFile(self, path, inode, write=True)

    def open_file(self, path: str, *, write: bool = False) -> SimFile:
        node = self._node(path)
        assert isinstance(node, Inode)
        return SimFile(self, path, node, write=write)

    def exists(self, path: str) -> bool:
        try:
            self._node(path)
        except StorageFailed:
            return False
        return True

    def size(self, path: str) -> int:
        node = self._node(path)
        assert isinstance(node, Inode)
        return len(node.data)

    def modified_ms(self, path: str) -> int:
        node = self._node(path)
        assert isinstance(node, Inode)
        return node.modified_ms

    def listdir(self, path: str) -> list[str]:
        return sorted(self._folder(path).names)

    def mkdir(self, path: str) -> None:
        folder, name = self._place(path)
        if name in folder.names:
            raise StorageFailed(path, errno.EEXIST, "the name is taken")
        self.take_a_page(path)
        self.change(path, "mkdir")
        folder.set(name, Folder())

    def rmdir(self, path: str) -> None:
        folder, name = self._place(path)
        assert not self._folder(path).names
        self.change(path, "rmdir")
        folder.set(name, None)

    def rename(self, old: str, new: str) -> None:
        folder, name = self._place(new)
        old_folder, old_name = self._place(old)
        assert folder is old_folder, "renames between folders are not needed"
        node = self._node(old)
        self.change(old, "rename")
        folder.set(name, node, old_name)

    def unlink(self, path: str) -> None:
        folder, name = self._place(path)
        assert isinstance(self._node(path), Inode)
        self.change(path, "unlink")
        folder.set(name, None)

    def sync_dir(self, path: str) -> None:
        folder = self._folder(path)
        self.change(path, "sync_dir")
        folder.durable = dict(folder.names)
        folder.pending.clear()

    def space(self, path: str) -> Space:
        return Space(self.capacity, self.free())

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        yield
