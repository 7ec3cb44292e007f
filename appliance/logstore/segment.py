"""One segment of a log: its three files, and its indexes while somebody needs them.

Invariant: `size` bytes of the .log file are whole batches. Index entries reach their files in
order and nothing overwrites them, except where recovery or a truncation cut the indexes. Called by
the log and by recovery.
"""

import errno
from collections.abc import Iterator

from appliance.base.disk import Disk, File, read_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.logstore.files import INDEX, LOG, TIME_INDEX, TXN_INDEX, stem
from appliance.logstore.indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetIndex, TimeIndex
from appliance.logstore.scan import Found, Scan
from appliance.wire.batch_header import HEADER, HEADER_SIZE, MAGIC

UNKNOWN = -2
"""Timestamp of a segment that was not looked at yet."""


class Segment:
    """base: offset of its first record. file, index, times: None while the segment is at rest."""

    __slots__ = ("base", "file", "index", "newest", "newest_offset", "size", "stem", "times")

    def __init__(self, folder: str, base: int, size: int) -> None:
        self.stem = stem(folder, base)
        self.base = base
        self.size = size
        self.file: File | None = None
        self.index: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        self.newest = UNKNOWN
        self.newest_offset = base

    @property
    def folder(self) -> str:
        return self.stem.rpartition("/")[0]

    @property
    def path(self) -> str:
        return self.stem + LOG

    def index_paths(self) -> tuple[str, str]:
        return self.stem + INDEX, self.stem + TIME_INDEX

    def create(self, disk: Disk) -> None:
        """Make the files of a new active segment, all of them or none."""
        self.file = disk.create(self.path)
        try:
            for suffix in (INDEX, TIME_INDEX, TXN_INDEX):
                if disk.exists(self.stem + suffix):  # an index without a log is a leftover
                    disk.unlink(self.stem + suffix)
                if suffix != TXN_INDEX:  # which comes with the first abort
                    disk.create(self.stem + suffix).close()
        except DiskFull:
            self.rest_file()
            disk.unlink(self.path)
            raise
        self.index = OffsetIndex()
        self.times = TimeIndex()
        self.newest = -1

    def reader(self, disk: Disk) -> File:
        """The .log file, opened for reading if it was not open."""
        if self.file is None:
            self.file = disk.open_file(self.path)
        return self.file

    def read_indexes(self, disk: Disk) -> tuple[OffsetIndex, TimeIndex]:
        """The indexes as their files have them, empty where a file is missing or makes no sense."""
        index, times = self.index, self.times
        if index is None or times is None:
            index_path, times_path = self.stem + INDEX, self.stem + TIME_INDEX
            index = OffsetIndex(read_file(disk, index_path) if disk.exists(index_path) else None)
            times = TimeIndex(read_file(disk, times_path) if disk.exists(times_path) else None)
            index.keep_sound(self.size)
            self.index, self.times = index, times
        return index, times

    def entry(self, disk: Disk, count: int) -> tuple[int, int] | None:
        """Position and base offset of the batch that the last of `count` index entries names; None
        when there is none or it names something else. Raises StorageFailed."""
        index, _ = self.read_indexes(disk)
        if count:
            position, last = index.positions[count - 1], self.base + index.offsets[count - 1]
            data = self.reader(disk).pread(HEADER_SIZE, position)
            if len(data) == HEADER_SIZE:
                header = HEADER.unpack(data)
                if header[3] == MAGIC and header[0] + header[6] == last:
                    return position, header[0]
        return None

    def batches(self, position: int, end: int, chunk: int = 1 << 20) -> Iterator[Found]:
        """The batches of an open segment from `position` to `end`, their bodies not looked at.
        Raises StorageFailed."""
        assert self.file is not None
        scan = Scan(self.file, position, end, self.base, trust_position=end, chunk=chunk)
        for found in scan.chunks():
            yield from found
        if scan.problem:
            raise self.corrupt(scan.position, scan.problem)

    def corrupt(self, position: int, text: str) -> StorageFailed:
        """The error for a position without a valid batch."""
        return StorageFailed(self.path, errno.EBADMSG, f"corrupt at byte {position}: {text}")

    def write_indexes(self, disk: Disk, *, sync: bool = False) -> None:
        """Bring the index files up to what is in memory; cut what recovery dropped."""
        assert self.index is not None and self.times is not None
        for suffix, part, width in (
            (INDEX, self.index, OFFSET_ENTRY),
            (TIME_INDEX, self.times, TIME_ENTRY),
        ):
            if part.is_stored() and not sync:
                continue
            path = self.stem + suffix
            file = disk.open_file(path, write=True) if disk.exists(path) else disk.create(path)
            try:
                file.truncate(part.written * width)
                data = part.pending()
                if data:
                    file.pwritev([data], part.written * width)
                    part.written = len(part.offsets)
                part.stored = part.written * width
                if sync:
                    file.sync()
            finally:
                file.close()

    def rest_file(self) -> None:
        """Give back the descriptor."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def rest(self) -> None:
        """Give back the descriptor and the indexes."""
        self.rest_file()
        self.index = self.times = None
