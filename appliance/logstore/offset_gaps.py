"""Which offsets no segment of a log has: somebody removed a segment, or a restore forgot one.

The end of a full segment stands nowhere but in its last batch, which its index leads to: two reads
for each segment, whatever its size. Where that does not lead to it in a few reads nothing is said.
Called for opened logs, at the start alone.
"""

from itertools import pairwise
from struct import Struct
from typing import Final

from appliance.base.disk import Disk, File
from appliance.logstore.indexes import OFFSET_ENTRY
from appliance.logstore.log import PartitionLog
from appliance.logstore.scan import Scan
from appliance.logstore.segment import Segment
from appliance.wire.batch_header import HEADER, HEADER_SIZE, MAGIC

_READ: Final = 16 << 10
_READS: Final = 64
_UNKNOWN: Final = 1 << 63
_ENTRY: Final = Struct(">ii")
assert _ENTRY.size == OFFSET_ENTRY

Hole = tuple[int, int]
"""First and last of the offsets."""


def offsets(log: PartitionLog) -> list[Hole]:
    """The holes between the segments of an opened log, from its log start on; none of a compacted
    one, which has them by nature. Raises StorageFailed when a file refuses."""
    if log.config.compact:
        return []
    found = []
    for before, segment in pairwise(log.segments):
        if segment.base <= log.log_start_offset:
            continue
        end = max(_end_of(log.disk, before), log.log_start_offset)
        if end < segment.base:
            found.append((end, segment.base - 1))
    return found


def _end_of(disk: Disk, segment: Segment) -> int:
    """The offset behind a full segment's last record; _UNKNOWN, behind all of them, when a few
    reads do not find it."""
    file = disk.open_file(segment.path)
    try:
        scan = Scan(
            file,
            _last_indexed(disk, segment, file),
            segment.size,
            segment.base,
            trust_position=segment.size,
            chunk=_READ,
        )
        for reads, _ in enumerate(scan.chunks()):
            if reads == _READS:
                break
    finally:
        file.close()
    known = scan.position >= segment.size and not scan.problem
    return scan.next_offset if known else _UNKNOWN


def _last_indexed(disk: Disk, segment: Segment, file: File) -> int:
    """Position of the batch that the last entry of the index names, 0 when it names none."""
    path = segment.index_paths()[0]
    count = disk.size(path) // OFFSET_ENTRY if disk.exists(path) else 0
    if not count:
        return 0
    index = disk.open_file(path)
    try:
        entry = index.pread(OFFSET_ENTRY, (count - 1) * OFFSET_ENTRY)
    finally:
        index.close()
    if len(entry) < OFFSET_ENTRY:
        return 0
    relative, position = _ENTRY.unpack(entry)
    data = file.pread(HEADER_SIZE, position) if 0 <= position < segment.size else b""
    if len(data) < HEADER_SIZE:
        return 0
    header = HEADER.unpack(data)
    right = header[3] == MAGIC and header[0] + header[6] == segment.base + relative
    return position if right else 0
