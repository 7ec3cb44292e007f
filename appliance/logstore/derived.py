"""The files beside a segment against its batches: offset index, time index, transaction index.

Batches are told in their order and the entries walked beside them, so nothing is kept of a segment
but its indexes. What an entry must hold is what readers rely on: a lookup never lands behind what
it looks for, and no record up to an entry of the time index is newer than it says. Called by
`scrub`.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.base.errors import PeerError
from appliance.logstore import aborted, files
from appliance.logstore.indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetIndex, TimeIndex
from appliance.logstore.scan import HeaderFields
from appliance.wire.batch_header import CONTROL_BIT
from appliance.wire.records import iter_records

Told = tuple[str, int, str]
"""Suffix of the file, position in it, what is wrong."""
_ABORT: Final = b"\0\0\0\0"
_WORTH_AN_INDEX: Final = 1 << 20
"""Bytes of a segment that is not without one, however far apart the entries are."""


class Derived:
    """The three files of one segment. gaps: its log may have been compacted."""

    def __init__(self, disk: Disk, stem: str, base: int, *, gaps: bool) -> None:
        self._base, self._gaps = base, gaps
        self._problems: list[Told] = []
        self._lost = False  # batches that cannot be read: what they have nobody knows
        data = {
            suffix: read_file(disk, stem + suffix) if disk.exists(stem + suffix) else None
            for suffix in (files.INDEX, files.TIME_INDEX, files.TXN_INDEX)
        }
        self._has_index = data[files.INDEX] is not None
        self._index = OffsetIndex(data[files.INDEX] or b"")
        self._times = TimeIndex(data[files.TIME_INDEX] or b"")
        self._aborted = list(aborted.decode(data[files.TXN_INDEX] or b""))
        self._at = self._time_at = self._ended = 0
        self._newest = -1
        self._check_order(data)

    def _check_order(self, data: dict[str, bytes | None]) -> None:
        for name, column in (("offset", self._index.offsets), ("position", self._index.positions)):
            for number, (one, other) in enumerate(pairwise(column)):
                if other <= one:
                    at = (number + 1) * OFFSET_ENTRY
                    self._tell(files.INDEX, at, f"its {name}s go back from {one} to {other}")
                    break
        if any((data[files.TIME_INDEX] or b"")[(read := self._times.written * TIME_ENTRY) :]):
            self._tell(files.TIME_INDEX, read, "its entries do not ascend, or one is cut off")
        read = len(self._aborted) * aborted.ENTRY
        if any((data[files.TXN_INDEX] or b"")[read:]):
            self._tell(files.TXN_INDEX, read, "its entries do not ascend, or one is cut off")

    def lost(self) -> None:
        """A batch could not be read."""
        self._lost = True

    def batch(self, position: int, header: HeaderFields, data: bytes | memoryview) -> None:
        """The next one, whole."""
        relative, last = header[0] - self._base, header[0] + header[6] - self._base
        index, times = self._index, self._times
        while self._at < len(index.positions) and index.positions[self._at] <= position:
            at, where = index.positions[self._at], self._at * OFFSET_ENTRY
            if at < position and not self._lost:
                self._tell(files.INDEX, where, f"no batch begins at {at}")
            elif at == position and index.offsets[self._at] < relative:
                said = self._base + index.offsets[self._at]
                self._tell(files.INDEX, where, f"offset {said} lies before position {at}")
            self._at += 1
        while self._time_at < len(times.offsets) and times.offsets[self._time_at] < last:
            self._check_time(self._time_at)
            self._time_at += 1
        self._newest = max(self._newest, header[8])
        while (
            self._ended < len(self._aborted)
            and self._aborted[self._ended][2] <= header[0] + header[6]
        ):
            self._check_aborted(self._ended, header, data)
            self._ended += 1

    def _check_time(self, number: int) -> None:
        said = self._times.timestamps[number]
        if said < self._newest and (said or self._times.offsets[number]):  # else space set aside
            text = f"it says nothing is newer than {said}, there is a record of {self._newest}"
            self._tell(files.TIME_INDEX, number * TIME_ENTRY, text)

    def _check_aborted(self, number: int, header: HeaderFields, data: bytes | memoryview) -> None:
        """Where a batch has its last offset, that is the marker; a marker that is lost is known
        here alone."""
        producer, _, last, _ = self._aborted[number]
        right = producer == header[9] and header[5] & CONTROL_BIT and self._is_abort(data)
        if header[0] <= last and not right and not self._gaps:
            text = f"no marker at offset {last} ends what producer {producer} aborted"
            self._tell(files.TXN_INDEX, number * aborted.ENTRY, text)

    def _is_abort(self, data: bytes | memoryview) -> bool:
        try:
            return any(record.key == _ABORT for record in iter_records(memoryview(data)))
        except PeerError:
            return False

    def ended(self, end: int, *, whole: bool) -> Iterator[Told]:
        """The faults found at the end of a segment. end: bytes that were read. whole: of a segment
        that is full.
        """
        if whole and not self._lost:
            for number in range(self._time_at, len(self._times.offsets)):
                self._check_time(number)
            if self._at < len(self._index.positions):
                text = f"position {self._index.positions[self._at]} lies behind the segment"
                self._tell(files.INDEX, self._at * OFFSET_ENTRY, text)
            if not self._index.positions and end > _WORTH_AN_INDEX:
                text = "it is empty" if self._has_index else "it is missing"
                self._tell(files.INDEX, 0, text)
        yield from self._problems

    def _tell(self, suffix: str, position: int, text: str) -> None:
        if all(suffix != other for other, _, _ in self._problems):  # the first of each file
            self._problems.append((suffix, position, text))
