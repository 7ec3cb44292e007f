"""Swaps that a crash cut: what was decided is finished before a folder is opened, what was not is
forgotten. See `swap` for the order. Called by recovery.
"""

import errno

from appliance.base.disk import Disk, File
from appliance.base.errors import StorageFailed
from appliance.logstore.files import (
    CLEANED,
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    TXN_INDEX,
    offset_of,
    stem,
)
from appliance.logstore.format_upgrade import begins_old, check_segment
from appliance.logstore.scan import Scan


def finish_swaps(disk: Disk, folder: str) -> list[str]:
    """Before a folder is opened: finish what was decided, forget what was not; the names then.

    Indexes of swapped segments are dropped: they are built again when somebody needs them. That of
    aborted transactions is not, as the batches that it was made of are gone. Raises StorageFailed.
    """
    names = disk.listdir(folder)
    if not any(name.endswith((CLEANED, SWAP)) for name in names):
        return names
    swapped = [name.removesuffix(SWAP) for name in names if name.endswith(LOG + SWAP)]
    stay = {name for log in swapped for name in (log + SWAP, _transactions_of(log) + SWAP)}
    for name in names:
        if name.endswith((CLEANED, SWAP)) and name not in stay:
            disk.unlink(f"{folder}/{name}")
    bases = sorted(base for name in names if (base := offset_of(name, LOG)) >= 0)
    for base in sorted(offset_of(name, LOG) for name in swapped):
        if base >= 0:
            _finish(disk, folder, base, bases)
    if swapped:
        disk.sync_dir(folder)
    return disk.listdir(folder)


def _transactions_of(log: str) -> str:
    return log.removesuffix(LOG) + TXN_INDEX


def _finish(disk: Disk, folder: str, base: int, bases: list[int]) -> None:
    path = stem(folder, base) + LOG
    transactions = _transactions_of(path)
    file = disk.open_file(path + SWAP)
    try:
        end, problem = _check(file, base)
    finally:
        file.close()
    if problem and base in bases:  # not ours: it was durable before it got the name
        disk.unlink(path + SWAP)
        if disk.exists(transactions + SWAP):
            disk.unlink(transactions + SWAP)
        return
    if problem:
        raise StorageFailed(path + SWAP, errno.EBADMSG, f"a compacted segment: {problem}")
    for old in bases:
        if old == base or base <= old < end:
            for suffix in SEGMENT_SUFFIXES:
                if disk.exists(stem(folder, old) + suffix):
                    disk.unlink(stem(folder, old) + suffix)
    if disk.exists(transactions + SWAP):
        disk.rename(transactions + SWAP, transactions)
    disk.rename(path + SWAP, path)


def _check(file: File, base: int) -> tuple[int, str]:
    """The end offset of a segment and the fault there. One of an old message format comes from a
    repair, or from Apache Kafka."""
    size = file.size()
    if begins_old(file.pread, size):
        return check_segment(file.pread, size, base)
    scan = Scan(file, 0, size, base, gaps=True)
    for _ in scan.chunks():
        pass
    return scan.next_offset, scan.problem
