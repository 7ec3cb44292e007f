"""Copying the files of a log into another folder, piece by piece, on a thread of its own.

Invariant: nothing is read but what the log has committed, and nothing is written but files of the
copy, which nobody else knows. Called by `alter_log_dirs.py`.
"""

from typing import Final

from appliance.base.disk import Disk
from appliance.logstore import files

PIECE: Final = 8 << 20
"""Bytes of one job: between two of them other chores of the disk have their turn."""
_READ: Final = 1 << 20

_INDEXES: Final = (files.INDEX, files.TIME_INDEX, files.TXN_INDEX)


def copy_piece(disk: Disk, source: str, target: str, position: int, length: int) -> None:
    """Bytes position … position + length of a file; at position 0 the target begins anew. Raises
    StorageFailed."""
    if not position and disk.exists(target):
        disk.unlink(target)
    read = disk.open_file(source)
    try:
        write = disk.open_file(target, write=True) if position else disk.create(target)
        try:
            at, end = position, position + length
            while at < end:
                data = read.pread(min(_READ, end - at), at)
                assert data, f"{source} ends at {at}, before {end}"
                write.pwritev([data], at)
                at += len(data)
        finally:
            write.close()
    finally:
        read.close()


def sync_file(disk: Disk, path: str) -> None:
    """The bytes of a file reach the disk. Raises StorageFailed."""
    file = disk.open_file(path, write=True)
    try:
        file.sync()
    finally:
        file.close()


def seal(disk: Disk, source: str, target: str) -> None:
    """Copy the indexes of a segment that takes no more batches, and sync all of it. source,
    target: paths without suffix. Raises StorageFailed."""
    for suffix in _INDEXES:
        copy_whole(disk, source + suffix, target + suffix)
    sync_file(disk, target + files.LOG)


def copy_whole(disk: Disk, source: str, target: str) -> None:
    """A small file with its bytes on the disk; nothing when there is none. Raises
    StorageFailed."""
    if disk.exists(source):
        copy_piece(disk, source, target, 0, disk.size(source))
        sync_file(disk, target)


def copy_small(disk: Disk, source: str, target: str, active: str) -> None:
    """Copies the files beside the segments except the epochs: producer snapshots, the active
    segment's indexes. active: the stem of its files' names. Raises StorageFailed.
    """
    for name in disk.listdir(source):
        if name.endswith(files.SNAPSHOT) or (name.startswith(active) and name.endswith(_INDEXES)):
            copy_whole(disk, f"{source}/{name}", f"{target}/{name}")


def drop_others(disk: Disk, target: str, bases: list[int]) -> None:
    """Remove copies of segments that the log has no more. Raises StorageFailed."""
    known = {f"{base:020d}" for base in bases}
    for name in disk.listdir(target):
        if name.endswith(files.SEGMENT_SUFFIXES) and name.partition(".")[0] not in known:
            disk.unlink(f"{target}/{name}")
