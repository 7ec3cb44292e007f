"""Puts a compacted segment in the place of those that it was made of, in an order that a crash may
cut anywhere.

    .cleaned → .swap, durable: decided     the old ones → .deleted     .swap → the plain name

Invariant: a `.log.swap` on the disk is whole and stands for every segment whose base offset it
covers; who opens the folder finishes that (`unfinished_swaps`), as Apache Kafka does with ours and
we with its. `.cleaned` files count for nothing. A folder keeps the order of its changes (journals
of file systems do).
"""

import errno

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.logstore.compacted_segment import Cleaned
from appliance.logstore.files import CLEANED, INDEX, LOG, SWAP, TIME_INDEX, TXN_INDEX, stem
from appliance.logstore.log import PartitionLog
from appliance.logstore.removal import Removal, rename_away
from appliance.logstore.segment import Segment

_INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)
"""The last one is there if the segment holds abort markers."""


def decide(disk: Disk, folder: str, base: int, size: int) -> None:
    """The cleaned segment of `size` bytes is to take the place of the old ones, whatever happens.
    Any thread. Raises StorageFailed, also when the file is not what was written."""
    found = disk.size(stem(folder, base) + LOG + CLEANED)
    if found != size:
        text = f"a compacted segment of {size} bytes has {found}"
        raise StorageFailed(stem(folder, base) + LOG + CLEANED, errno.EBADMSG, text)
    for suffix in (*_INDEXES, LOG):
        path = stem(folder, base) + suffix
        if suffix != TXN_INDEX or disk.exists(path + CLEANED):
            disk.rename(path + CLEANED, path + SWAP)
    disk.sync_dir(folder)


def discard(disk: Disk, folder: str, base: int) -> None:
    """Forget a cleaned segment, decided or not. Any thread. Raises StorageFailed."""
    for suffix in (LOG, *_INDEXES):
        for mark in (SWAP, CLEANED):
            path = stem(folder, base) + suffix + mark
            if disk.exists(path):
                disk.unlink(path)


def replace(log: PartitionLog, bases: list[int], cleaned: Cleaned, now_ms: int) -> Removal:
    """Put the decided segment in the place of those with these base offsets; what to remove later.

    Names change and the log's list with them, nothing is synced. The caller has told readers of
    the new layout before. Raises StorageFailed: then the log is over until it is opened again.
    """
    first = next(n for n, segment in enumerate(log.segments) if segment.base == bases[0])
    old = log.segments[first : first + len(bases)]
    assert [segment.base for segment in old] == bases and all(map(log.is_synced, old))
    new = Segment(log.path, cleaned.base, cleaned.size)
    new.newest, new.newest_offset = cleaned.newest, cleaned.newest_offset
    removed = [path for segment in old for path in rename_away(log.disk, segment)]
    for suffix in (*_INDEXES, LOG):
        if suffix != TXN_INDEX or log.disk.exists(new.stem + suffix + SWAP):
            log.disk.rename(new.stem + suffix + SWAP, new.stem + suffix)
    log.order.exchange(first, old, new)
    log.unsynced.folders_changed((log.path,))
    return Removal(now_ms + log.config.file_delete_delay_ms, tuple(removed))
