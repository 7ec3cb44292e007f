"""Which bytes of a file are in the page cache, and reading ahead of who found some missing.

sendfile waits for the disk where pages are missing, and everybody else in this process with it. So
the end of a range is asked for first; while it is missing the kernel fetches it on its own, and the
connection asks again a millisecond later. Once a reader has missed something the disk is kept
busy ahead of it, in larger pieces than the kernel's own read-ahead. Called by connections.
"""

import errno
import os
from typing import Final

from appliance.base.compiled import mypyc_attr

AHEAD_BYTES: Final = 4 << 20
"""How far ahead of a reader the disk works."""

PATIENCE_NS: Final = 1_000_000_000
"""So long a range may stay away (memory is short, the disk is slow); then sendfile waits for it."""

_MOST_FILES: Final = 1000
_UNABLE: Final = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


@mypyc_attr(allow_interpreted_subclasses=True)
class PageCache:
    """The kernel's answers. Where it cannot tell, or the C library cannot ask it (musl before
    1.2.5), everything counts as present."""

    __slots__ = ("_able", "_byte")

    def __init__(self) -> None:
        self._able = hasattr(os, "RWF_NOWAIT")
        self._byte = [bytearray(1)]

    def holds(self, fd: int, position: int) -> bool:
        """Could this byte be read without the disk? Behind the file's end: yes, nothing is."""
        if not self._able:
            return True
        try:
            os.preadv(fd, self._byte, position, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as problem:
            if problem.errno not in _UNABLE:
                raise
            self._able = False
        return True

    def fetch(self, fd: int, position: int, length: int) -> None:
        """Let the kernel read these bytes in; does not wait for them."""
        os.posix_fadvise(fd, position, length, os.POSIX_FADV_WILLNEED)


class ReadAhead:
    """One reader's misses. Descriptors may be used again for other files: that costs one miss."""

    __slots__ = ("_cache", "_ends", "_since_ns")

    def __init__(self, cache: PageCache) -> None:
        self._cache = cache
        self._ends: dict[int, int] = {}  # descriptor to what was asked for, up to here
        self._since_ns = 0  # when the range that is waited for was missed first

    def missed(self, fd: int, position: int, end: int, now_ns: int) -> bool:
        """Bytes up to `end` are not there: fetch them. Returns whether patience is at its end."""
        if not self._since_ns:
            self._since_ns = now_ns
        elif now_ns - self._since_ns >= PATIENCE_NS:
            self._since_ns = 0
            return True
        asked, wanted = self._ends.get(fd, 0), end + AHEAD_BYTES
        if not end <= asked <= wanted:
            self._ask(fd, position, wanted)
        return False

    def passed(self, fd: int, end: int) -> None:
        """Bytes up to `end` are there and being sent: stay ahead of them."""
        self._since_ns = 0
        asked = self._ends.get(fd)
        if asked is not None and asked - end < AHEAD_BYTES // 2:
            self._ask(fd, max(asked, end), end + AHEAD_BYTES)

    def _ask(self, fd: int, position: int, end: int) -> None:
        if len(self._ends) >= _MOST_FILES:
            self._ends.clear()
        self._ends[fd] = end
        self._cache.fetch(fd, position, end - position)
