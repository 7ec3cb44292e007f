"""The segment that takes batches: what is staged, what is written, where the newest batches lie.

    stage* → commit → locate

Invariant: what lies below `size` is whole batches with ascending offsets, and all of it can be
found; what is staged lies between `size` and `position`, `written_end` and `end_offset`, and is
found by nobody. The first StorageFailed is final: every later call raises it again, and what was
staged was never there. DiskFull is not: what was staged is held and written by the first `commit`
that finds room. One thread owns it. Hot functions: `stage`, `commit`.
"""

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final
from zlib import crc32

from appliance.base.disk import Disk, File
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.ids import NO_TIMESTAMP
from appliance.config.log_config import LogConfig
from appliance.logstore.aborted import ENTRY, Aborted, encode
from appliance.logstore.files import TXN_INDEX
from appliance.logstore.flush import Unsynced
from appliance.logstore.indexes import INDEX_WRITE, OFFSET_ENTRY
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.segment import Segment
from appliance.wire import markers
from appliance.wire.batch import stamp_log_append_time
from appliance.wire.batch_header import CONTROL_BIT, LENGTH_PREFIX, BatchHeader
from appliance.wire.ranges import cut

FileRange = tuple[int, int, int, int]
"""(base offset of the segment, position in its file, length, length of the first batch)."""

TAIL: Final = 4096
"""How many of the newest batches a log finds without reading, at least."""

Tail = tuple[int, list[int], list[int]]
"""The newest batches: from which offset on all are among them, the offset behind the last record of
each (there may be a gap before the next), their positions."""

WRITEBACK_BYTES: Final = 8 << 20
"""Appended bytes after which the kernel is told to begin writing: then a sync finds little to do,
and a write seldom waits behind one (`benchmarks/writeback.py`)."""

FULL: Final = -1
NEW_EPOCH: Final = -2

FARTHEST: Final = (1 << 31) - 1
"""An offset relative to a segment's base has 32 bits in the indexes."""

_NEVER: Final = (1 << 63) - 1
"""No timestamp is later: an empty segment takes a batch whatever its time."""
"""Later than every time; small enough that compiled code compares it without an object."""
_PATCH: Final = Struct(">qii")  # base offset, batch length, leader epoch
_PRODUCER: Final = Struct(">q")
_PRODUCER_AT: Final = 43


class ActiveSegment(Segment):
    """size: bytes that are written. position: with what is staged. end_offset: what the next record
    gets. written_end: behind the last record that is written. epoch: leader epoch of what is
    staged. newest, newest_offset: of all that was staged. roll_time, roll_clock: a batch with a
    newer timestamp, or at a later wall clock, goes to the next segment. unsaved: batches since the
    producers were last written down. failure: why nothing works any more, or None."""

    __slots__ = (
        "_aborted",
        "_aborted_size",
        "_begun_ms",
        "_disk",
        "_first_timestamp",
        "_index_full",
        "_interval",
        "_stamps",
        "_tail_ends",
        "_tail_positions",
        "_tail_start",
        "_told",
        "_unsynced",
        "_views",
        "end_offset",
        "epoch",
        "failure",
        "position",
        "producers",
        "roll_clock",
        "roll_offset",
        "roll_size",
        "roll_time",
        "segment_ms",
        "since_index",
        "unsaved",
        "written_end",
    )

    def __init__(
        self,
        disk: Disk,
        segment: Segment,
        end_offset: int,
        producers: ProducerStates,
        unsynced: Unsynced,
        config: LogConfig,
    ) -> None:
        """Takes over a segment that is open for writing and has its indexes."""
        super().__init__(segment.folder, segment.base, segment.size)
        assert segment.file is not None and segment.index is not None and segment.times is not None
        assert end_offset >= segment.base
        self.file, self.index, self.times = segment.file, segment.index, segment.times
        self.newest, self.newest_offset = segment.newest, segment.newest_offset
        self._disk = disk
        self.producers = producers
        self._unsynced = unsynced
        self.position = self._told = self.size
        self.end_offset = self.written_end = end_offset
        self.epoch = -1
        self.since_index = self.unsaved = 0
        self.failure: StorageFailed | None = None
        self.roll_offset = self.base + FARTHEST
        self.roll_time = self.roll_clock = _NEVER
        self._first_timestamp = NO_TIMESTAMP
        self._begun_ms = 0
        self._views: list[memoryview] = []
        self._aborted: list[Aborted] = []  # staged, in the order of their markers
        self._aborted_size = -1  # bytes of the transaction index before them, -1: not looked at
        self._tail_start = self.base
        self._tail_ends: list[int] = []
        self._tail_positions: list[int] = []
        self.set_config(config)

    def set_config(self, config: LogConfig) -> None:
        """The topic's settings; they hold from the next batch on."""
        self._stamps = config.message_timestamp_type == "LogAppendTime"
        self._interval = config.index_interval_bytes
        self._index_full = config.segment_index_bytes // OFFSET_ENTRY
        assert self.index is not None
        full = len(self.index.offsets) >= self._index_full
        self.roll_size = 0 if full else config.segment_bytes
        most = config.segment_ms
        if config.compact:  # what is in the active segment is not compacted
            most = min(most, config.max_compaction_lag_ms)
        jitter = min(config.segment_jitter_ms, most)
        if jitter > 0:  # drawn from its name
            most -= crc32(self.stem.encode()) % jitter
        self.segment_ms = most
        if self.position:
            self._begin_time(self._first_timestamp, self._begun_ms)

    def resume(self, tail: Tail, since_index: int, first_timestamp: int, now_ms: int) -> None:
        """Takes over the state of the batches that recovery found in the file."""
        self._tail_start, self._tail_ends, self._tail_positions = tail
        self.since_index = since_index
        self.roll_time = self.roll_clock = _NEVER
        if self.position:
            self._begin_time(first_timestamp, now_ms)

    @property
    def begun_ms(self) -> int:
        """The newest timestamp of its first batch, or when it began where that has none; of a
        segment with records."""
        return self._first_timestamp if self._first_timestamp >= 0 else self._begun_ms

    def _begin_time(self, first_timestamp: int, now_ms: int) -> None:
        """Set when the segment rolls: `segment_ms` after the newest timestamp of its first batch.

        Without that timestamp the wall clock counts, from `now_ms` on, as in Kafka."""
        self._first_timestamp, self._begun_ms = first_timestamp, now_ms
        self.roll_time = self.roll_clock = _NEVER
        if first_timestamp >= 0:
            self.roll_time = first_timestamp + self.segment_ms
        else:
            self.roll_clock = now_ms + self.segment_ms

    # Append ---------------------------------------------------------------------------------------

    def stage(
        self, batch: memoryview, header: BatchHeader, epoch: int, now_ms: int, given: int = -1
    ) -> int:
        """Give a checked batch its offset, in place, and keep the view until `commit`.

        header: as it was sent. epoch: the leader's. With LogAppendTime the batch gets `now_ms` as
        its time. given: the offset that a leader gave it, which has stamped it too; it stays as it
        is. Returns the base offset; FULL when another segment must take it, NEW_EPOCH when where
        this leader epoch begins is not noted yet: `PartitionLog.stage` does either, and goes on.
        Raises StorageFailed.
        """
        if self.failure is not None:
            raise self.failure
        size = len(batch)
        base, newest = given, header[8]
        if given < 0:
            base = self.end_offset
            newest = now_ms if self._stamps else newest
        last = base + header[6]
        position = self.position
        if (
            (position + size > self.roll_size and position)
            or last > self.roll_offset
            or newest > self.roll_time
            or now_ms > self.roll_clock
        ):
            return FULL
        if epoch != self.epoch:
            return NEW_EPOCH
        if given < 0:
            if self._stamps:
                stamp_log_append_time(batch, now_ms)
            _PATCH.pack_into(batch, 0, base, size - LENGTH_PREFIX, epoch)
        if not position:
            self._begin_time(newest, now_ms)
        if newest > self.newest:
            self.newest = newest
            self.newest_offset = last
        since = self.since_index
        if since > self._interval:
            self._enter(last, position)
            since = 0
        self.since_index = since + size
        if header[9] >= 0:
            if header[5] & CONTROL_BIT:
                self._end_transaction(batch, header, base, now_ms)
            else:
                self.producers.update(header, base, now_ms)
        self._tail_ends.append(last + 1)
        self._tail_positions.append(position)
        self._views.append(batch)
        self.position = position + size
        self.end_offset = last + 1
        return base

    def _end_transaction(
        self, batch: memoryview, header: BatchHeader, base: int, now_ms: int
    ) -> None:
        """A marker is staged."""
        aborted = self.producers.end_transaction(header, base, now_ms, markers.read(batch))
        if aborted is not None:
            self._aborted.append(aborted)

    def _enter(self, last: int, position: int) -> None:
        """An entry in both indexes; in groups they go to their files."""
        index, times = self.index, self.times
        assert index is not None and times is not None
        index.offsets.append(last - self.base)
        index.positions.append(position)
        times.append(self.newest, self.newest_offset - self.base)
        entries = len(index.offsets)
        if entries >= self._index_full:
            self.roll_size = 0
        if entries - index.written >= INDEX_WRITE:
            try:
                self.write_indexes(self._disk)
                self.indexes_changed()
            except DiskFull:
                pass  # the next entry tries again
            except StorageFailed as failure:
                self.fail(failure)
                raise

    def commit(self) -> None:
        """Write what was staged and let go of the views. StorageFailed: none of it is there.
        DiskFull: none of it is there yet; copies of it are held for the next call."""
        if self.failure is not None:
            raise self.failure
        views = self._views
        if not views:
            return
        file = self.file
        assert file is not None
        position = self.position
        try:
            if self._aborted:
                self._write_aborted()
            file.pwritev(views, self.size)
        except DiskFull:
            self._hold(file)
            raise
        except StorageFailed as failure:
            self.fail(failure)
            raise
        if position - self._told >= WRITEBACK_BYTES:
            self._begin_writing(file)
        if self._aborted:
            self._aborted_size += ENTRY * len(self._aborted)
            self._aborted.clear()
        self.unsaved += len(views)
        views.clear()
        self.size = position
        self.written_end = self.end_offset
        if len(self._tail_ends) > 2 * TAIL:
            self._tail_start = self._tail_ends[TAIL - 1]
            del self._tail_ends[:TAIL], self._tail_positions[:TAIL]

    def _write_aborted(self) -> None:
        """Into the transaction index what the markers abort that are about to be written. It goes
        first: no reader is told of a marker whose entry found no room."""
        path = self.stem + TXN_INDEX
        there = self._disk.exists(path)
        file = self._disk.open_file(path, write=True) if there else self._disk.create(path)
        try:
            if self._aborted_size < 0:
                self._aborted_size = file.size()
            file.pwritev([encode(self._aborted)], self._aborted_size)
        finally:
            file.close()
        if not there:
            self._unsynced.folders_changed((self.folder,))
        self._unsynced.derived_changed(path)

    def _begin_writing(self, file: File) -> None:
        try:
            file.start_writeback(self._told, self.position - self._told)
        except StorageFailed as failure:
            self.fail(failure)
            raise
        self._told = self.position

    def _hold(self, file: File) -> None:
        """There was no room: cut off what of it was written, and let go of the caller's memory."""
        try:
            file.truncate(self.size)
        except StorageFailed as failure:
            self.fail(failure)
            raise
        self._views = [memoryview(bytes(view)) for view in self._views]

    @property
    def has_unwritten(self) -> bool:
        """True if staged bytes are not written yet: between turns only if the disk was full."""
        return bool(self._views)

    @property
    def holds_producers(self) -> bool:
        """True if a batch of an idempotent producer is staged."""
        return any(_PRODUCER.unpack_from(view, _PRODUCER_AT)[0] >= 0 for view in self._views)

    @property
    def holds_aborted(self) -> bool:
        """True if a staged batch aborts a transaction: the transaction index may be ahead of the
        log.
        """
        return bool(self._aborted)

    def forget_staged(self) -> None:
        """Discards what is staged: the end, the tail and the indexes return to what is written.
        Timestamps, producers and epochs do not: see `PartitionLog.take_back`.
        """
        self._views.clear()
        self._aborted.clear()
        self.end_offset = end = self.written_end
        self.position = self.size
        keep = bisect_right(self._tail_ends, end)
        del self._tail_ends[keep:], self._tail_positions[keep:]
        index, times = self.index, self.times
        if index is not None and times is not None:
            index.keep_entries(bisect_left(index.positions, self.size))
            times.keep_to(end - 1 - self.base)

    def fail(self, failure: StorageFailed) -> None:
        """A file of this log refused: the log is over, and what was staged is forgotten.

        Timestamps, producers and epochs stay ahead: they decide on appends alone, of which there
        are none any more.
        """
        if self.failure is None:
            self.failure = failure
        self.forget_staged()
        assert self.failure is not None and self.end_offset == self.written_end

    def indexes_changed(self) -> None:
        """The index files have new entries; the next flush makes them durable.

        So only the last INDEX_WRITE entries below the recovery point may be missing after a cut.
        """
        for path in self.index_paths():
            self._unsynced.derived_changed(path)

    def close_times(self) -> None:
        """The last entry of a time index is the newest timestamp of the segment."""
        assert self.times is not None
        self.times.append(self.newest, max(self.newest_offset - self.base, 0))

    def handed_over(self) -> Segment:
        """The same segment as one that takes no batches: it has file and indexes now."""
        assert not self._views
        plain = Segment(self.folder, self.base, self.size)
        plain.file, plain.index, plain.times = self.file, self.index, self.times
        plain.newest, plain.newest_offset = self.newest, self.newest_offset
        return plain

    # Find -----------------------------------------------------------------------------------------

    def locate(self, offset: int, max_bytes: int, limit_offset: int) -> FileRange | None:
        """Where the batches from the one with `offset` on lie, as `PartitionLog.locate` says; None
        when that is not one of the newest, a length of 0 or less when `limit_offset` lies in it."""
        if offset < self._tail_start:
            return None
        ends, positions = self._tail_ends, self._tail_positions
        at = bisect_right(ends, offset)
        if at == len(ends):
            return self.base, self.size, 0, 0
        position = positions[at]
        at += 1
        first = (positions[at] if at < len(positions) else self.size) - position
        if limit_offset >= self.written_end:
            end = self.size
        else:
            end = positions[bisect_right(ends, limit_offset)]
        length = end - position
        if length > max_bytes:
            length = cut(positions, position, first, length, max_bytes)
        return self.base, position, length, first

    def tail_position(self, offset: int) -> int:
        """Where the first batch begins that ends behind `offset`, -1 when it must be read."""
        if offset >= self.written_end:
            return self.size
        if offset < self._tail_start:
            return -1
        return self._tail_positions[bisect_right(self._tail_ends, offset)]
