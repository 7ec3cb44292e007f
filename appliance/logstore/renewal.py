"""Writes once more what a log has above its recovery point, before anybody builds on it.

Linux tells of a failed write-back once, to whoever had the file open, and then counts the pages as
clean: they can be read, the next sync succeeds without them, and when the kernel wants their memory
the old bytes are back. So whoever opens a log that was not closed in order can believe neither what
it reads nor a sync that succeeds, unless it has made the pages dirty itself. Invariant: when
`renew` returned and a sync of the segment's file succeeds after it, the bytes that were checked are
on the disk. Bytes below the recovery point are the same before and after. Called by recovery.
"""

import errno
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.logstore.scan import Scan
from appliance.logstore.segment import Segment

CHUNK: Final = 1 << 20


def renew(disk: Disk, segment: Segment, position: int, offset: int, *, gaps: bool) -> None:
    """Write the segment's bytes from `position` on, where the batch with `offset` begins, and
    check them again: between the first check and the write the kernel may have dropped some.

    The segment's file is open, so that its next sync hears of a write-back that fails. Raises
    StorageFailed.
    """
    assert segment.file is not None
    rewrite(disk, segment.path, position)
    scan = Scan(segment.file, position, segment.size, offset, gaps=gaps)
    for _ in scan.chunks():
        pass
    if scan.problem:
        text = f"it changed while it was opened: {scan.problem}; the next start checks it again"
        raise StorageFailed(segment.path, errno.EIO, text)


def rewrite(disk: Disk, path: str, position: int = 0) -> None:
    """Write a file's bytes from `position` on over themselves: a cut that hits it changes none.
    Raises StorageFailed."""
    file = disk.open(path, write=True)
    try:
        end = file.size()
        while position < end:
            data = file.pread(min(CHUNK, end - position), position)
            if not data:
                raise StorageFailed(path, errno.EIO, f"it ends at {position}, not at {end}")
            file.pwritev([data], position)
            position += len(data)
    finally:
        file.close()
