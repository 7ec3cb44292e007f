"""Holds what a log has above its recovery point against the medium, before anybody builds on it,
and writes once more what is not there.

Linux tells of a failed write-back once, to whoever had the file open, and then counts the pages as
clean: they can be read, the next sync succeeds without them, and when the kernel wants their memory
the old bytes are back. Writing into such a page is not enough either: ext4 believes to know where
its block is, writes there, and leaves the block marked as never written. So a page that differs
from the medium is dropped, then written, synced, and read from the medium again. A page is dropped
only with the whole folio that it belongs to: pieces begin and end where folios do. Invariant: when
`renew` returned, the bytes that were checked are on the disk. Called by recovery.
"""

import errno
from typing import Final

from appliance.base.crc import crc32c
from appliance.base.disk import PAGE, Disk, File
from appliance.base.errors import StorageFailed
from appliance.logstore.scan import Scan
from appliance.logstore.segment import Segment

FOLIO: Final = 2 << 20
"""The largest folio of Linux on x86-64; each lies at a multiple of its size."""
CHUNK: Final = FOLIO
assert CHUNK % FOLIO == 0 and FOLIO % PAGE == 0


def renew(disk: Disk, segment: Segment, position: int, offset: int, *, gaps: bool) -> None:
    """Bring the segment's bytes from `position` on, where the batch with `offset` begins, to the
    medium, and check them again: since the first check the kernel may have dropped some.

    Raises StorageFailed.
    """
    assert segment.file is not None
    restore(disk, segment.path, position)
    scan = Scan(segment.file, position, segment.size, offset, gaps=gaps)
    for _ in scan.chunks():
        pass
    if scan.problem:
        raise changed(segment.path, scan.problem)


def restore(disk: Disk, path: str, position: int = 0) -> None:
    """Write what the page cache has of a file from `position` on and the medium does not. Raises
    StorageFailed."""
    file = disk.open_file(path, write=True)
    try:
        written = _write_missing(file, position // FOLIO * FOLIO)
        if written:
            file.sync()
        for at, length, crc in written:
            if crc32c(file.pread_medium(length, at)) != crc:
                raise changed(path, f"what was written at {at} is not there")
    finally:
        file.close()


def _write_missing(file: File, at: int) -> list[tuple[int, int, int]]:
    """Position, length and CRC32C of the pieces that had to be written."""
    assert at % FOLIO == 0, "part of a folio cannot be dropped"
    written, end = [], file.size()
    while at < end:
        data = file.pread(min(CHUNK, end - at), at)
        if not data:
            raise changed(file.path, f"it ends at {at}, not at {end}")
        if file.pread_medium(len(data), at) != data:
            file.drop_cached(len(data), at)
            file.pwritev([data], at)
            written.append((at, len(data), crc32c(data)))
        at += len(data)
    return written


def changed(path: str, problem: str) -> StorageFailed:
    """The error for a file whose checked bytes the kernel dropped and read again differently."""
    text = f"it changed while it was opened: {problem}; the next start checks it again"
    return StorageFailed(path, errno.EIO, text)
