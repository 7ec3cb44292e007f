"""Writes one compacted segment and its indexes into files that end in `.cleaned`.

Invariant: when `finish` returned, bytes and indexes are on the disk; the names become durable with
the swap. Called by `compaction`.
"""

from typing import Final, NamedTuple

from appliance.base.disk import Disk, File
from appliance.logstore.aborted import Aborted, encode
from appliance.logstore.files import CLEANED, INDEX, LOG, TIME_INDEX, TXN_INDEX, stem
from appliance.logstore.indexes import OffsetIndex, TimeIndex
from appliance.wire.batch_header import HEADER

_WRITE: Final = 1 << 20
"""Bytes gathered for one write."""


class Cleaned(NamedTuple):
    """A segment that waits to take the place of others. newest: timestamp in ms, -1 for none, and
    the offset of the batch that has it."""

    base: int
    size: int
    newest: int
    newest_offset: int


class SegmentWriter:
    """`add` batches in order, `finish`, `close` in any case."""

    __slots__ = (
        "_aborted",
        "_base",
        "_disk",
        "_file",
        "_index",
        "_interval",
        "_newest",
        "_newest_offset",
        "_pending",
        "_pending_bytes",
        "_position",
        "_since",
        "_stem",
        "_times",
    )

    def __init__(self, disk: Disk, folder: str, base: int, interval: int) -> None:
        self._disk = disk
        self._base = base
        self._interval = interval
        self._stem = stem(folder, base)
        self._file: File = _fresh(disk, self._stem + LOG + CLEANED)
        self._index, self._times = OffsetIndex(), TimeIndex()
        self._newest = self._newest_offset = -1
        self._aborted: list[Aborted] = []
        self._pending: list[bytes] = []
        self._pending_bytes = self._position = self._since = 0

    def add(self, batch: bytes | memoryview) -> None:
        """Append a batch; the bytes are copied."""
        header = HEADER.unpack_from(batch)
        last = header[0] + header[6]
        if header[8] > self._newest:
            self._newest, self._newest_offset = header[8], last
        position = self._position + self._pending_bytes
        if self._since > self._interval:
            self._index.append(last - self._base, position)
            self._times.append(self._newest, self._newest_offset - self._base)
            self._since = 0
        self._since += len(batch)
        self._pending.append(bytes(batch))
        self._pending_bytes += len(batch)
        if self._pending_bytes >= _WRITE:
            self._write()

    def note_marker(self, aborted: Aborted | None) -> None:
        """The marker of a transaction of which something is left; None: it was committed."""
        if aborted is not None:
            self._aborted.append(aborted)

    def _write(self) -> None:
        if self._pending:
            self._file.pwritev(self._pending, self._position)
            self._position += self._pending_bytes
            self._pending.clear()
            self._pending_bytes = 0

    def finish(self) -> Cleaned:
        """Everything to the disk. Raises StorageFailed."""
        self._write()
        self._file.sync()
        if self._newest >= 0:
            self._times.append(self._newest, self._newest_offset - self._base)
        indexes = {INDEX: self._index.pending(), TIME_INDEX: self._times.pending()}
        if self._aborted:
            indexes[TXN_INDEX] = encode(self._aborted)
        for suffix, data in indexes.items():
            file = _fresh(self._disk, self._stem + suffix + CLEANED)
            try:
                if data:
                    file.pwritev([data], 0)
                file.sync()
            finally:
                file.close()
        return Cleaned(self._base, self._position, self._newest, max(self._newest_offset, 0))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _fresh(disk: Disk, path: str) -> File:
    if disk.exists(path):
        disk.unlink(path)
    return disk.create(path)
