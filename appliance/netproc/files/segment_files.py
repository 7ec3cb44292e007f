"""Segment files opened for reading, the most recently used of them kept open.

A file stays open while a response that sends from it exists, whatever is evicted meanwhile. All
descriptors of this kind are counted and bounded, so that connections find some, too.
"""

import errno
import os
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

from appliance.base.remote_cache import cached_stem
from appliance.handlers.exchange import Route
from appliance.ring.partition_table import COLUMNS, LAYOUT, ROW_MASK, PartitionTable
from appliance.wire.ranges import Read

_ENTRY = 8  # bytes of an index entry
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
CAPACITY = 256
_NO_BOUND = 1 << 30


class Descriptors:
    """Counts the open descriptors of segments. most: how many there may be."""

    __slots__ = ("most", "used")

    def __init__(self, most: int = _NO_BOUND) -> None:
        self.most = most
        self.used = 0

    def open_file(self, path: str) -> int:
        """Open for reading. Raises OSError, EMFILE at the bound."""
        if self.used >= self.most:
            raise OSError(errno.EMFILE, f"{self.used} segment files are open", path)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.used += 1
        return fd

    def close_file(self, fd: int) -> None:
        """Close a descriptor of `open_file`."""
        self.used -= 1
        os.close(fd)


class OpenSegment:
    """Descriptors that close themselves when nobody refers to them any more. read: of the .log
    file, index: of the .index file, once `entries` was asked for."""

    __slots__ = ("_descriptors", "_index_fd", "_size", "_stem", "fd", "index", "layout", "read")

    def __init__(self, stem: str, layout: int, descriptors: Descriptors) -> None:
        self.fd = -1
        self._index_fd = -1
        self._size = -1
        self._stem = stem
        self._descriptors = descriptors
        self.layout = layout
        self.fd = descriptors.open_file(stem + ".log")
        self.read: Read = partial(os.pread, self.fd)
        self.index: Read = self.read

    def size(self) -> int:
        """Bytes of a full segment. Never to be asked of the active one."""
        if self._size < 0:
            self._size = os.fstat(self.fd).st_size
        return self._size

    def entries(self) -> int:
        """How many entries its index file has, 0 when there is none."""
        if self._index_fd < 0:
            try:
                self._index_fd = self._descriptors.open_file(self._stem + ".index")
            except FileNotFoundError:
                return 0
            self.index = partial(os.pread, self._index_fd)
        return os.fstat(self._index_fd).st_size // _ENTRY

    def __del__(self) -> None:
        for fd in (self.fd, self._index_fd):
            if fd >= 0:
                self._descriptors.close_file(fd)


class SegmentFiles:
    """At most `capacity` segments kept open, by (handle, base offset, number of the log folder): a
    partition may have moved to another one. log_dirs: the paths of the folders. most: descriptors
    that those kept open and those being sent from may have together. caches: the folders in which
    the I/O processes keep what they fetched from a remote store, by index."""

    __slots__ = ("_caches", "_capacity", "_descriptors", "_log_dirs", "_open", "_rows")

    def __init__(
        self,
        table: PartitionTable,
        log_dirs: Sequence[str],
        capacity: int = CAPACITY,
        most: int = _NO_BOUND,
        caches: Sequence[str] = (),
    ) -> None:
        self._rows = table.state
        self._caches = caches
        self._log_dirs = log_dirs
        self._capacity = min(capacity, max(1, most // 4))  # each may have two, others are sent from
        self._descriptors = Descriptors(most)
        self._open: OrderedDict[tuple[int, int, int], OpenSegment] = OrderedDict()

    def open_segment(
        self, route: Route, base_offset: int, number: int, layout: int
    ) -> OpenSegment | None:
        """The segment `base_offset` of a partition in this log folder as it is in this layout; None
        when there is no such file (any more). layout < 0: a file of its home's cache instead, which
        is not kept open: that would keep room that the cache gives away. Raises OSError when the
        file cannot be opened."""
        if layout < 0:
            try:
                return self._opened(cached_stem(self._caches[route.home], -layout), layout)
            except FileNotFoundError:
                return None
        key = (route.handle, base_offset, number)
        found = self._open.get(key)
        if found is not None and found.layout == layout:
            self._open.move_to_end(key)
            return found
        folder = f"{self._log_dirs[number]}/{route.topic}-{route.partition}"
        try:
            opened = self._opened(f"{folder}/{base_offset:020d}", layout)
        except FileNotFoundError:
            return None
        if self._rows[(route.handle & ROW_MASK) * COLUMNS + LAYOUT] != layout:
            return None  # compacted: the name may have changed hands before it was opened
        if found is not None:
            self._drop(route.handle)
        self._open[key] = opened
        if len(self._open) > self._capacity:
            self._open.popitem(last=False)
        return opened

    def _opened(self, stem: str, layout: int) -> OpenSegment:
        try:
            return OpenSegment(stem, layout, self._descriptors)
        except OSError as problem:
            if problem.errno not in NO_DESCRIPTORS or not self._open:
                raise
        self._open.clear()  # what nobody sends from
        return OpenSegment(stem, layout, self._descriptors)

    def _drop(self, handle: int) -> None:
        """Close the segments of a partition, because an open file that compaction replaced keeps
        its room on the disk."""
        for key in [key for key in self._open if key[0] == handle]:
            del self._open[key]

    def close_unused(self) -> None:
        """Close what is not being sent: topics were deleted, or an ioproc came back and may have
        cut a file."""
        self._open.clear()
