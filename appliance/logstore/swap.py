"""Puts a compacted segment in the place of those that it was made of, in an order that a crash may
cut anywhere.

    .cleaned → .swap, durable: decided     the old ones → .deleted     .swap → the plain name

Invariant: a `.log.swap` on the disk is whole and stands for every segment whose base offset it
covers; who opens the folder finishes that (`finish_swaps`), as Apache Kafka does with ours and we
with its. `.cleaned` files count for nothing. A folder keeps the order of its changes (journals of
file systems do).
"""

import errno
from typing import TYPE_CHECKING

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.logstore.compacted_segment import Cleaned
from appliance.logstore.files import (
    CLEANED,
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    TIME_INDEX,
    offset_of,
    stem,
)
from appliance.logstore.removal import Removal, rename_away
from appliance.logstore.scan import Scan
from appliance.logstore.segment import Segment

if TYPE_CHECKING:
    from appliance.logstore.log import Log

_INDEXES = (INDEX, TIME_INDEX)


def decide(disk: Disk, folder: str, base: int, size: int) -> None:
    """The cleaned segment of `size` bytes is to take the place of the old ones, whatever happens.
    Any thread. Raises StorageFailed, also when the file is not what was written."""
    found = disk.size(stem(folder, base) + LOG + CLEANED)
    if found != size:
        text = f"a compacted segment of {size} bytes has {found}"
        raise StorageFailed(stem(folder, base) + LOG + CLEANED, errno.EBADMSG, text)
    for suffix in (LOG, *_INDEXES):
        path = stem(folder, base) + suffix
        disk.rename(path + CLEANED, path + SWAP)
    disk.sync_dir(folder)


def discard(disk: Disk, folder: str, base: int) -> None:
    """Forget a cleaned segment, decided or not. Any thread. Raises StorageFailed."""
    for suffix in (LOG, *_INDEXES):
        for mark in (SWAP, CLEANED):
            path = stem(folder, base) + suffix + mark
            if disk.exists(path):
                disk.unlink(path)


def replace(log: "Log", bases: list[int], cleaned: Cleaned, now_ms: int) -> Removal:
    """Put the decided segment in the place of those with these base offsets; what to remove later.

    Names change and the log's list with them, nothing is synced. The caller has told readers of
    the new layout before. Raises StorageFailed: then the log is over until it is opened again.
    """
    first = next(n for n, segment in enumerate(log.segments) if segment.base == bases[0])
    old = log.segments[first : first + len(bases)]
    assert [segment.base for segment in old] == bases and old[-1] is not log.active
    new = Segment(log.path, cleaned.base, cleaned.size)
    new.newest, new.newest_offset = cleaned.newest, cleaned.newest_offset
    removed = [path for segment in old for path in rename_away(log.disk, segment)]
    for suffix in (*_INDEXES, LOG):
        log.disk.rename(new.stem + suffix + SWAP, new.stem + suffix)
    log.exchange(first, old, new)
    log.folders_changed(log.path)
    return Removal(now_ms + log.config.file_delete_delay_ms, tuple(removed))


def finish_swaps(disk: Disk, folder: str) -> list[str]:
    """Before a folder is opened: finish what was decided, forget what was not; the names then.

    Indexes of swapped segments are dropped: they are built again when somebody needs them. Raises
    StorageFailed.
    """
    names = disk.listdir(folder)
    if not any(name.endswith((CLEANED, SWAP)) for name in names):
        return names
    swapped = [name.removesuffix(SWAP) for name in names if name.endswith(LOG + SWAP)]
    for name in names:
        if name.endswith(CLEANED) or (name.endswith(SWAP) and not name.endswith(LOG + SWAP)):
            disk.unlink(f"{folder}/{name}")
    bases = sorted(base for name in names if (base := offset_of(name, LOG)) >= 0)
    for base in sorted(offset_of(name, LOG) for name in swapped):
        if base >= 0:
            _finish(disk, folder, base, bases)
    if swapped:
        disk.sync_dir(folder)
    return disk.listdir(folder)


def _finish(disk: Disk, folder: str, base: int, bases: list[int]) -> None:
    path = stem(folder, base) + LOG
    file = disk.open(path + SWAP)
    try:
        scan = Scan(file, 0, file.size(), base, gaps=True)
        for _ in scan.chunks():
            pass
    finally:
        file.close()
    if scan.problem and base in bases:  # not ours: it was durable before it got the name
        disk.unlink(path + SWAP)
        return
    if scan.problem:
        raise StorageFailed(path + SWAP, errno.EBADMSG, f"a compacted segment: {scan.problem}")
    for old in bases:
        if old == base or base <= old < scan.next_offset:
            for suffix in SEGMENT_SUFFIXES:
                if disk.exists(stem(folder, old) + suffix):
                    disk.unlink(stem(folder, old) + suffix)
    disk.rename(path + SWAP, path)
