"""Segment files opened for reading, the most recently used of them kept open.

A file stays open while a response that sends from it exists, whatever is evicted meanwhile.
"""

import os
from collections import OrderedDict

from appliance.ring.partition_table import LAYOUT, PartitionTable


class OpenSegment:
    """A descriptor that closes itself when nobody refers to it any more."""

    __slots__ = ("fd", "layout")

    def __init__(self, path: str, layout: int) -> None:
        self.layout = layout
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        fd = getattr(self, "fd", -1)
        if fd >= 0:
            os.close(fd)


class Segments:
    """At most `capacity` segments kept open, by (handle, base offset) and folder: a partition may
    have moved to another one."""

    def __init__(self, table: PartitionTable, capacity: int = 256) -> None:
        self._table = table
        self._capacity = capacity
        self._open: OrderedDict[tuple[int, int, str], OpenSegment] = OrderedDict()

    def get(self, handle: int, base_offset: int, folder: str, layout: int) -> OpenSegment | None:
        """The segment `base_offset` in `folder` as it is in this layout; None when there is no
        such file (any more)."""
        key = (handle, base_offset, folder)
        found = self._open.get(key)
        if found is not None and found.layout == layout:
            self._open.move_to_end(key)
            return found
        try:
            opened = OpenSegment(f"{folder}/{base_offset:020d}.log", layout)
        except FileNotFoundError:
            return None
        if self._table.get(handle, LAYOUT) != layout:
            return None  # compacted: the name may have changed hands before it was opened
        if found is not None:
            self._drop(handle)
        self._open[key] = found = opened
        if len(self._open) > self._capacity:
            self._open.popitem(last=False)
        return found

    def _drop(self, handle: int) -> None:
        """What compaction replaced takes room on the disk while it is open."""
        for key in [key for key in self._open if key[0] == handle]:
            del self._open[key]

    def forget(self) -> None:
        """Close what is not being sent: topics were deleted, or an ioproc came back and may have
        cut a file."""
        self._open.clear()
