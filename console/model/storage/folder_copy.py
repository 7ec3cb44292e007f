"""A data folder copied file by file into an empty one, byte for byte: from Apache Kafka to us and
back.

The source is only read. Bytes are written anew, never shared with the source: what either broker
does to its files later must not be seen in the other's. `meta.properties` comes last, behind a
sync of all the rest, so that what was cut off is no data folder.
"""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from appliance.base.disk import Disk, write_file
from appliance.logstore import files as names
from appliance.metadata.identity import META_PROPERTIES
from appliance.supervisor.folder import LOCK_NAME
from console.model.asking.failure import Failure, usage
from console.model.storage.durable import sync_all

_PIECE: Final = 4 << 20
SPARE_BYTES: Final = 64 << 20
"""What must be free besides: a broker that starts writes, too."""
_SPARSE: Final = (names.INDEX, names.TIME_INDEX)


@dataclass(slots=True, frozen=True)
class Source:
    """A file that is to be copied. path: within the folder. size: bytes. ns: when it was
    written."""

    path: str
    size: int
    ns: int


def sources(folder: str, folders: list[str], kept: Callable[[str], bool]) -> list[Source]:
    """The files of these folders in it, and those that lie in itself and are `kept`; without
    `meta.properties`. Raises OSError."""
    found = [name for name in sorted(os.listdir(folder)) if kept(name)]
    for one in folders:
        there = sorted(os.listdir(f"{folder}/{one}"))
        found += [f"{one}/{name}" for name in there if not name.endswith(names.DELETED)]
    made = []
    for path in found:
        told = os.lstat(f"{folder}/{path}")
        if not stat.S_ISREG(told.st_mode):
            text = f"{folder}/{path} is no plain file"
            raise Failure(
                text,
                "symbolic links are not followed, because they may lead outside",
                name="CANNOT_MOVE",
            )
        # An index that a kill left is 10 MB of room for entries, next to none of it on the disk.
        held = told.st_blocks * 512 if path.endswith(_SPARSE) else told.st_size
        made.append(Source(path, min(told.st_size, held), told.st_mtime_ns))
    return made


@contextmanager
def stopped(folder: str) -> Iterator[None]:
    """Holds the folder's lock, so that no appliance or Kafka works in it. Raises Failure.

    Apache Kafka locks by POSIX's locks, we by flock; both refuse while the other kind of reader is
    here.
    """
    fd = -1
    with suppress(FileNotFoundError):
        fd = os.open(f"{folder}/{LOCK_NAME}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if fd >= 0:
            _lock(fd, folder)
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _lock(fd: int, folder: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        text = f"{folder} is in use by a broker"
        raise Failure(text, "stop it first", name="FOLDER_IN_USE") from None


def check_target(folder: str, source: str) -> None:
    """Raises Failure unless it is empty, or not there yet, and not within the source."""
    if os.path.commonpath((folder, source)) == source:
        raise usage(f"{folder} lies in {source}, which is read-only")
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise usage(f"{folder} is not empty", "name an empty or absent folder")


def check_room(folder: str, needed: int) -> None:
    """Raises Failure when the copy would not go into the file system of the folder, which need not
    be there."""
    place = folder
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    told = os.statvfs(place)
    free = told.f_bavail * told.f_frsize
    if free < needed + SPARE_BYTES:
        text = f"{place} has {free} bytes free, the copy needs {needed + SPARE_BYTES}"
        raise Failure(text, name="DISK_FULL")


def copy(folder: str, found: list[Source], target: str, told: Callable[[int, int], None]) -> None:
    """Copy them; durable at return. told: bytes done, of how many. Raises Failure, OSError."""
    total, done = sum(one.size for one in found), 0
    os.makedirs(target, exist_ok=True)
    for one in found:
        path = f"{target}/{one.path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _copy_file(f"{folder}/{one.path}", path)
        # Records without a time are as old as their segment.
        os.utime(path, ns=(one.ns, one.ns))
        done += one.size
        told(done, total)
    sync_all(target)


def finish(disk: Disk, target: str, extra: Mapping[str, bytes]) -> None:
    """Write these files, `meta.properties` among them, which makes it a data folder. Raises
    StorageFailed."""
    for name, data in extra.items():
        if name != META_PROPERTIES:
            write_file(disk, f"{target}/{name}", data)
    write_file(disk, f"{target}/{META_PROPERTIES}", extra[META_PROPERTIES])


def _copy_file(source: str, target: str) -> None:
    """Runs of zeros stay holes, as an index that was not closed has them."""
    fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as read, open(target, "xb") as written:
        while piece := read.read(_PIECE):
            if piece.count(0) == len(piece):
                written.seek(len(piece), os.SEEK_CUR)
            else:
                written.write(piece)
        written.truncate(written.tell())
