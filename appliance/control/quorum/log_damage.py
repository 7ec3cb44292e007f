"""Telling damage of the metadata log from a torn tail, before recovery cuts anything off.

A power cut may tear what was not synced yet, and cutting that off loses nothing that was
acknowledged. Everything older was synced: after an orderly end all of it, before a later leader
epoch all that the earlier one wrote, and whole segments before the last one. Damage there would
silently take topics with it, so it is refused. Called by `open_log`.
"""

import errno
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.base.errors import StorageFailed
from appliance.logstore.scan import Scan
from appliance.wire.batch import checksum_holds
from appliance.wire.batch_header import HEADER, HEADER_SIZE, LENGTH_PREFIX, MAGIC

_MAGIC_AT = 16


ALONE: Final = (
    "restore the folder from a copy, or see what can be saved:"
    " penstock metadata repair DATA-FOLDER --dry-run"
)
OF_SEVERAL: Final = (
    "the other voters have the whole log: while they run,"
    " penstock metadata repair DATA-FOLDER sets it aside here, and the next start fetches it"
)
"""What can be done about damage."""


def refuse_damage(
    disk: Disk,
    folder: str,
    bases: Sequence[int],
    *,
    durable: int,
    clean: bool,
    remedy: str = ALONE,
) -> None:
    """bases: segments, in order. durable: a snapshot has what is below this offset. clean: the
    last shutdown was orderly.

    Raises StorageFailed with file, position and remedy when something synced is damaged."""
    first = max(bisect_right(bases, durable) - 1, 0)
    for base in bases[first:]:
        path = f"{folder}/{base:020d}.log"
        data = memoryview(read_file(disk, path))
        position, epoch, problem = _end(disk, path, base, len(data), durable)
        if not problem:
            continue
        if clean or base != bases[-1] or _later_epoch(data[position:], epoch):
            raise StorageFailed(
                path,
                errno.EBADMSG,
                f"damaged at byte {position}: {problem}. It was whole once and cutting it off here"
                f" would lose topics; {remedy}",
            )


def _end(disk: Disk, path: str, base: int, size: int, durable: int) -> tuple[int, int, str]:
    """(where the whole batches end, leader epoch of the last one, what is wrong there)."""
    file = disk.open_file(path)
    try:
        scan = Scan(file, 0, size, base, trust_offset=durable)
        epoch = -1
        for chunk in scan.chunks():
            epoch = chunk[-1][1][2]
        return scan.position, epoch, scan.problem
    finally:
        file.close()


def _later_epoch(rest: memoryview, epoch: int) -> bool:
    """True if a whole batch of a later leader epoch lies somewhere behind the damage."""
    raw = bytes(rest)
    at = raw.find(bytes((MAGIC,)), _MAGIC_AT)
    while at >= 0:
        start = at - _MAGIC_AT
        if start + HEADER_SIZE <= len(raw):
            _, length, leader_epoch, *_ = HEADER.unpack_from(raw, start)
            size = length + LENGTH_PREFIX
            if (
                epoch < leader_epoch
                and HEADER_SIZE <= size <= len(raw) - start
                and checksum_holds(rest[start : start + size])
            ):
                return True
        at = raw.find(bytes((MAGIC,)), at + 1)
    return False
