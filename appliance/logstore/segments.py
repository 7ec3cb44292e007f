"""The segments of one log in order, and which of the full ones are open.

Invariant: base offsets ascend, the last segment is the active one, and a segment that was only read
gives its descriptor and indexes back when RESTING others were read after it. Called by the log, and
by lookups that find a segment asleep.
"""

from bisect import bisect_right
from operator import attrgetter
from typing import Final

from appliance.base.disk import Disk
from appliance.logstore.segment import Segment
from appliance.wire.batch_header import LENGTH_PREFIX

RESTING: Final = 4
"""Segments besides the active one that stay open for reading, per log."""

_base = attrgetter("base")


class LogSegments:
    """all: oldest first. closed_size: bytes of all but the last. disk, path: where they are.
    interval: bytes of batches between two entries of an index that is built again."""

    __slots__ = ("_resting", "all", "closed_size", "disk", "interval", "path")

    def __init__(self, disk: Disk, path: str, found: list[Segment], interval: int) -> None:
        self.disk = disk
        self.path = path
        self.all = found
        self.interval = interval
        self.closed_size = sum(segment.size for segment in found[:-1])
        self._resting: list[Segment] = []

    def number(self, offset: int) -> int:
        """Which of them an offset belongs to."""
        return max(bisect_right(self.all, offset, key=_base) - 1, 0)

    # Order ----------------------------------------------------------------------------------------

    def roll(self, full: Segment, active: Segment) -> None:
        """`full` takes the place of the last one, which takes no more batches; `active` follows."""
        assert self.all[-1].base == full.base < active.base
        self.all[-1] = full
        self.all.append(active)
        self.closed_size += full.size

    def drop_oldest(self) -> Segment:
        """Forget the first one, which is not the active one."""
        assert len(self.all) > 1
        segment = self.all.pop(0)
        self.let_go(segment)
        self.closed_size -= segment.size
        return segment

    def exchange(self, first: int, old: list[Segment], new: Segment) -> None:
        """`new` takes the place of `old`, from number `first` on."""
        assert self.all[first : first + len(old)] == old and old[-1] is not self.all[-1]
        for segment in old:
            self.let_go(segment)
        self.all[first : first + len(old)] = [new]
        self.closed_size += new.size - sum(segment.size for segment in old)

    def end_with(self, number: int, active: Segment) -> None:
        """`active` is the last one, in the place of that with this number and all behind it."""
        for segment in self.all[number:]:
            if segment in self._resting:
                self._resting.remove(segment)
        self.all[number:] = [active]
        self.closed_size = sum(segment.size for segment in self.all[:-1])

    # What is open ---------------------------------------------------------------------------------

    def let_rest(self, segment: Segment) -> None:
        """It is open only for reading from now on: the longest unused of its kind is closed."""
        resting = self._resting
        resting.append(segment)
        if len(resting) > RESTING:
            resting.pop(0).rest()

    def let_go(self, segment: Segment) -> None:
        """Close one that nobody asks for any more."""
        if segment in self._resting:
            self._resting.remove(segment)
        segment.rest()

    def rest_all(self) -> None:
        """Close every file."""
        for segment in self.all:
            segment.rest()
        self._resting.clear()

    def open_segment(self, segment: Segment) -> None:
        """Open a segment and its indexes, and build these again where they are of no use."""
        resting = self._resting
        if segment.index is not None and segment.file is not None:
            if resting and segment in resting and resting[-1] is not segment:
                resting.remove(segment)
                resting.append(segment)
            return
        segment.reader(self.disk)
        index, _ = segment.read_indexes(self.disk)
        if not index.offsets and segment.size > 2 * self.interval:
            self.rebuild(segment)
        self.let_rest(segment)

    def rebuild(self, segment: Segment) -> None:
        """Index files of a full segment are missing or damaged: make them from its batches."""
        assert segment.index is not None and segment.times is not None
        assert segment is not self.all[-1], "the active one's are never read from files"
        segment.index.keep_entries(0)
        segment.times.keep_to(-1)
        newest, newest_offset, since = -1, 0, 0
        for position, header in segment.batches(0, segment.size):
            relative = header[0] + header[6] - segment.base
            if header[8] > newest:
                newest, newest_offset = header[8], relative
            if since > self.interval:
                segment.index.append(relative, position)
                segment.times.append(newest, newest_offset)
                since = 0
            since += header[1] + LENGTH_PREFIX
        segment.times.append(newest, newest_offset)
        segment.write_indexes(self.disk)
