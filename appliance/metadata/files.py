"""The files of `__cluster_metadata-0`, any of which control may delete while they are read."""

from errno import ENOENT
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.base.errors import StorageFailed
from appliance.metadata import checkpoint
from appliance.metadata.checkpoint import Checkpoint, CheckpointBroken, SnapshotId

_LOG: Final = ".log"
_DIGITS: Final = 20


class LogGone(Exception):
    """Raised when the next records are no longer in the log: a snapshot has them."""


def segments(disk: Disk, folder: str) -> list[int]:
    """Base offsets of the segments, in order; none when there is no log yet."""
    names = disk.listdir(folder) if disk.exists(folder) else []
    return sorted(
        int(name[:_DIGITS])
        for name in names
        if len(name) == _DIGITS + len(_LOG) and name.endswith(_LOG) and name[:_DIGITS].isdigit()
    )


def snapshots(disk: Disk, folder: str) -> list[SnapshotId]:
    """Snapshots by their names, oldest first; whether they are whole is not looked at."""
    names = disk.listdir(folder) if disk.exists(folder) else []
    found = [checkpoint.parse_name(name) for name in names]
    return sorted(one for one in found if one is not None)


def newest_snapshot(disk: Disk, folder: str) -> tuple[SnapshotId, Checkpoint] | None:
    """The newest snapshot that is whole, or None."""
    for snapshot in reversed(snapshots(disk, folder)):
        try:
            return snapshot, checkpoint.read(read_file(disk, f"{folder}/{snapshot.file_name}"))
        except CheckpointBroken:
            continue
        except StorageFailed as cause:
            if cause.errno != ENOENT:
                raise
    return None


def read_at(disk: Disk, path: str, position: int, length: int) -> bytes:
    """Up to `length` bytes of a segment; raises LogGone when the file is no more."""
    try:
        file = disk.open_file(path)
    except StorageFailed as cause:
        if cause.errno != ENOENT:
            raise
        raise LogGone(f"{path} was deleted") from cause
    try:
        return file.pread(length, position)
    finally:
        file.close()
