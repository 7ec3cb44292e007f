"""Segment files opened for reading, the most recently used of them kept open.

A file stays open while a response that sends from it exists, whatever is evicted meanwhile.
"""

import os
from collections import OrderedDict


class OpenSegment:
    """A descriptor that closes itself when nobody refers to it any more."""

    __slots__ = ("fd",)

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        fd = getattr(self, "fd", -1)
        if fd >= 0:
            os.close(fd)


class Segments:
    """At most `capacity` segments kept open, by (handle, base offset) and folder: a partition may
    have moved to another one."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._open: OrderedDict[tuple[int, int, str], OpenSegment] = OrderedDict()

    def get(self, handle: int, base_offset: int, folder: str) -> OpenSegment | None:
        """The segment `base_offset` in `folder`; None when there is no such file (any more)."""
        key = (handle, base_offset, folder)
        found = self._open.get(key)
        if found is not None:
            self._open.move_to_end(key)
            return found
        try:
            found = OpenSegment(f"{folder}/{base_offset:020d}.log")
        except FileNotFoundError:
            return None
        self._open[key] = found
        if len(self._open) > self._capacity:
            self._open.popitem(last=False)
        return found

    def forget(self) -> None:
        """Close what is not being sent: topics were deleted, or an ioproc came back and may have
        cut a file."""
        self._open.clear()
