"""The log of one partition: segments of record batches, appended, found, synced.

    stage* → commit → locate          flush_job → run (any thread) → flushed

Invariant: what lies below `active_size` in the active segment, and all of the older ones, is whole
batches with ascending offsets; `recovery_point` ≤ `end_offset`, and everything below it survives a
power cut. The first StorageFailed is final: every later call raises it again, and what was staged
was never there. DiskFull is not: the log stays as it is, what was staged is held and written by the
first `commit` that finds room, and files that are derived from the records come late. One thread
owns a Log. Hot functions: `stage`, `commit`, `locate`.
All offsets are record offsets, sizes bytes, times ms of the wall clock.
"""

from bisect import bisect_right
from contextlib import suppress
from struct import Struct
from typing import Final

from appliance.base.disk import Disk, File
from appliance.base.errors import OFFSET_OUT_OF_RANGE, DiskFull, PeerError, StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore import lookup, recovery, removal
from appliance.logstore.flush import FlushJob
from appliance.logstore.indexes import INDEX_WRITE, OFFSET_ENTRY
from appliance.logstore.log_state import NEVER, LogState
from appliance.logstore.producer_snapshot import encode_snapshot
from appliance.logstore.recovery import TAIL
from appliance.logstore.removal import Removal
from appliance.wire.batch import stamp_log_append_time
from appliance.wire.batch_header import LENGTH_PREFIX, BatchHeader

FileRange = tuple[int, int, int, int]
"""(base offset of the segment, position in its file, length, length of the first batch)."""

SNAPSHOT_BATCHES: Final = 20_000
"""Batches after which a sync also writes the producer states: a start steps over as many in 20 ms.
"""

WRITEBACK_BYTES: Final = 8 << 20
"""Appended bytes after which the kernel is told to begin writing: then a sync finds little to do,
and a write seldom waits behind one (`benchmarks/writeback.py`)."""

_PATCH: Final = Struct(">qii")  # base offset, batch length, leader epoch


class Log(LogState):
    """What is done to a log. See `LogState` for what can be read of it."""

    __slots__ = ()

    @classmethod
    def create(
        cls,
        disk: Disk,
        path: str,
        topic_id: bytes,
        config: LogConfig,
        *,
        now_ms: int,
        start_offset: int = 0,
    ) -> "Log":
        """A new log in the folder `path`, which is made.

        What a creation that was cut short left there is removed. The first flush makes the new one
        durable. The caller first drops what checkpoints say of an older partition of this name.
        Raises StorageFailed, also when the folder holds records already.
        """
        log = cls(disk, path, config, start_offset)
        recovery.create(log, topic_id)
        return log

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        config: LogConfig,
        *,
        recovery_point: int,
        log_start_offset: int,
        clean: bool,
        machine_lived: bool,
        now_ms: int,
    ) -> "Log":
        """The log in the folder `path` as it was left.

        recovery_point: below it everything was synced. clean: the last shutdown was orderly,
        nothing is checked. Otherwise CRC32C is checked from the recovery point on, a torn tail is
        cut off, and the rest is read back from the medium, written where it is not there, and
        synced: at return all of the log is on the disk. machine_lived: only the writer died since,
        so that its indexes are not torn.
        Raises StorageFailed when a file refuses, and when something that must be there is missing
        or damaged: then nothing was changed.
        """
        log = cls(disk, path, config, log_start_offset)
        found = recovery.Recovery(log, recovery_point, clean, machine_lived)
        try:
            found.run(now_ms)
            if log.recovery_point < log.end_offset:
                log.sync_now()
        except StorageFailed:
            for segment in found.segments:
                segment.rest()
            raise
        return log

    # Append ---------------------------------------------------------------------------------------

    def stage(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> int:
        """Give a checked batch its offset, in place, and keep the view until `commit`.

        header: as it was sent. With LogAppendTime the batch gets `now_ms` as its time.
        Returns the base offset. Raises StorageFailed when a new segment could not be made; after
        DiskFull this batch was not staged.
        """
        if self.failure is not None:
            raise self.failure
        size = len(batch)
        newest = header[8]
        if self._stamps:
            stamp_log_append_time(batch, now_ms)
            newest = now_ms
        base = self.end_offset
        last = base + header[6]
        position = self._position
        if (
            position + size > self._roll_size
            or last > self._roll_offset
            or newest > self._roll_time
        ):
            self.roll(now_ms)
            position = self._position
        _PATCH.pack_into(batch, 0, base, size - LENGTH_PREFIX, leader_epoch)
        if newest > self._newest:
            if self._roll_time == NEVER:
                self._roll_time = newest + self._segment_ms()
            self._newest = newest
            self._newest_offset = last
        since = self._since_index
        if since > self._interval:
            self._index_entry(last, position)
            since = 0
        self._since_index = since + size
        if leader_epoch != self.latest_epoch:
            self.begin_epoch(leader_epoch)
        if header[9] >= 0:
            self.producers.update(header, base, now_ms)
        self._tail_offsets.append(base)
        self._tail_positions.append(position)
        self._views.append(batch)
        self._position = position + size
        self.end_offset = last + 1
        return base

    def commit(self) -> None:
        """Write what was staged and let go of the views. StorageFailed: none of it is there.
        DiskFull: none of it is there yet; copies of it are held for the next call."""
        if self.failure is not None:
            raise self.failure
        views = self._views
        if not views:
            return
        file = self.active.file
        assert file is not None
        try:
            file.pwritev(views, self.active_size)
        except DiskFull:
            self._hold(file)
            raise
        except StorageFailed as failure:
            self.fail(failure)
            raise
        try:
            if self._position - self._told >= WRITEBACK_BYTES:
                file.start_writeback(self._told, self._position - self._told)
                self._told = self._position
        except StorageFailed as failure:
            self.fail(failure)
            raise
        self.snapshots.due += len(views)
        views.clear()
        self.active_size = self._position
        self._committed_end = self.end_offset
        if len(self._tail_offsets) > 2 * TAIL:
            del self._tail_offsets[:TAIL], self._tail_positions[:TAIL]

    def _hold(self, file: File) -> None:
        """There was no room: cut off what of it was written, and let go of the caller's memory."""
        try:
            file.truncate(self.active_size)
        except StorageFailed as failure:
            self.fail(failure)
            raise
        self._views = [memoryview(bytes(view)) for view in self._views]

    @property
    def written_end(self) -> int:
        """Behind the last record that is in the file."""
        return self._committed_end

    @property
    def held(self) -> bool:
        """Whether something was staged that is not written: between turns only because there was
        no room."""
        return bool(self._views)

    def begin_epoch(self, leader_epoch: int) -> None:
        """What is staged from now on is of this leader epoch (KIP-101). Raises StorageFailed."""
        self.latest_epoch = leader_epoch
        self.epochs.assign(leader_epoch, self.end_offset)
        self._guarded_epochs()

    def _guarded_epochs(self) -> None:
        try:
            self.write_epochs()
        except DiskFull:
            pass  # the next flush tries again: `epochs.changed` says so
        except StorageFailed as failure:
            self.fail(failure)
            raise

    def _index_entry(self, last: int, position: int) -> None:
        """An entry in both indexes; in groups they go to their files."""
        index = self._index
        index.append(last - self.active_base, position)
        self._times.append(self._newest, self._newest_offset - self.active_base)
        if (len(index.offsets) + 1) * OFFSET_ENTRY > self.config.segment_index_bytes:
            self._roll_size = 0
        if len(index.offsets) - index.written >= INDEX_WRITE:
            try:
                self.active.write_indexes(self._disk)
                self.indexes_changed()
            except DiskFull:
                pass  # the next entry tries again
            except StorageFailed as failure:
                self.fail(failure)
                raise

    # Segments -------------------------------------------------------------------------------------

    def roll(self, now_ms: int) -> None:
        """Commit what is staged and begin a new segment. An empty active segment stays.

        Raises StorageFailed; after DiskFull the active segment is the one that it was.
        """
        self.commit()
        if not self.active_size:
            return
        active = self.active
        try:
            active.size = self.active_size
            active.newest, active.newest_offset = self._newest, self._newest_offset
            self.close_times()
            active.write_indexes(self._disk)
            self.snapshots.write(self.end_offset, self.producers)
            self.begin_segment(self.end_offset)
        except DiskFull:
            raise
        except StorageFailed as failure:
            self.fail(failure)
            raise
        self._closed_size += active.size
        self._unsynced.rolled_over(active)

    # Find -----------------------------------------------------------------------------------------

    def locate(self, offset: int, max_bytes: int, limit_offset: int) -> FileRange | None:
        """Where the batches from the one with `offset` on lie; None: none below `limit_offset`.

        limit_offset: the high watermark; the range ends before the batch that contains it, and
        with its segment. The first batch is always whole, the last may be cut at `max_bytes`.
        Raises PeerError(OFFSET_OUT_OF_RANGE) outside log start to log end, StorageFailed.
        """
        if not self.log_start_offset <= offset <= self.end_offset:
            raise PeerError(
                OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside {self.log_start_offset} to {self.end_offset}, "
                "log start and log end; begin at the earliest or latest offset",
            )
        if offset >= limit_offset:
            return None
        offsets = self._tail_offsets
        at = bisect_right(offsets, offset) - 1
        if at < 0:
            return lookup.locate(self, offset, max_bytes, limit_offset)
        positions = self._tail_positions
        position = positions[at]
        at += 1
        first = (positions[at] if at < len(positions) else self.active_size) - position
        if limit_offset >= self._committed_end:
            end = self.active_size
        else:
            end = positions[bisect_right(offsets, limit_offset) - 1]
        length = end - position
        if length > max_bytes:
            length = max_bytes if max_bytes > first else first
        return (self.active_base, position, length, first) if length > 0 else None

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to `epoch` and the offset behind its last record (KIP-279).

        (-1, -1) when that is not known.
        """
        return self.epochs.end_of(epoch, self._committed_end)

    def offset_for_timestamp(
        self, timestamp: int, limit_offset: int
    ) -> tuple[int, int, int] | None:
        """The first record below `limit_offset` that is not older, as (timestamp, offset, epoch).

        Raises StorageFailed, and PeerError when the batch that holds it cannot be opened.
        """
        return lookup.offset_for_timestamp(self, timestamp, limit_offset)

    def max_timestamp(self) -> tuple[int, int, int] | None:
        """The first record with the newest timestamp, as (timestamp, offset, epoch)."""
        return lookup.max_timestamp(self)

    # Sync -----------------------------------------------------------------------------------------

    def flush_job(self) -> FlushJob | None:
        """What must be synced now, or None. One at a time: `flushed` or `fail` ends it.

        Raises the StorageFailed that ended the log.
        """
        if self.failure is not None:
            raise self.failure
        end = self._committed_end
        unsynced, epochs = self._unsynced, self.epochs
        if epochs.changed:
            self._guarded_epochs()
        if self.recovery_point >= end and not unsynced.folders:
            return None
        job = unsynced.begin(self._disk, end, self.active, self.active_size)
        if self.snapshots.due >= SNAPSHOT_BATCHES and not self._views:
            job.snapshot = self.snapshots.path(end), encode_snapshot(self.producers)
            job.stale = self.snapshots.note(end)
        return job

    def flushed(self, job: FlushJob) -> None:
        """`job` has run: the recovery point moves to its end offset."""
        for segment in self._unsynced.end(job):
            lookup.let_rest(self, segment)
        self.recovery_point = max(self.recovery_point, job.end_offset)

    def sync_now(self) -> None:
        """Sync all that is committed, here and now. Raises StorageFailed."""
        job = self.flush_job()
        if job is not None:
            try:
                job.run()
            except StorageFailed as failure:
                self.fail(failure)
                raise
            self.flushed(job)

    # Shrink ---------------------------------------------------------------------------------------

    def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are gone for readers; whole segments go with the next `retain`."""
        assert offset <= self._committed_end, (offset, self._committed_end)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.cut_start(offset)

    def retain(self, now_ms: int, high_watermark: int) -> list[Removal]:
        """Drop old segments as retention.ms, retention.bytes and the log start say.

        Returns what to remove when. Raises StorageFailed. See `removal.retain`.
        """
        if self.failure is not None:
            raise self.failure
        try:
            return removal.retain(self, now_ms, high_watermark)
        except DiskFull:
            raise
        except StorageFailed as failure:
            self.fail(failure)
            raise

    @property
    def has_trimmed_segments(self) -> bool:
        """Whether a whole segment lies below the log start (`advance_log_start`)."""
        behind = self.segments[1].base if len(self.segments) > 1 else self.end_offset
        return behind <= self.log_start_offset and self.size > 0

    def oldest_rests(self) -> bool:
        """Whether no sync has the first segment to do: it was rolled before the last one."""
        return self.segments[0] not in self._unsynced.rolled

    def delete(self, unique: str, now_ms: int, *, sync: bool = True) -> Removal:
        """Let go of the files and rename the folder to <name>.<unique>-delete, durably; without
        `sync` the caller syncs what the folder lies in. On any thread that has the log for itself.

        The last flush job must have ended. Raises StorageFailed.
        """
        self.let_go()
        return removal.delete(self, unique, now_ms, sync=sync)

    def _write_derived(self) -> None:
        """What spares the next start some reading."""
        self.close_times()
        with suppress(DiskFull):
            self.active.write_indexes(self._disk, sync=True)
        self.snapshots.write(self.end_offset, self.producers)

    def close(self) -> None:
        """Sync everything, indexes and producer states included, and let go of all files.

        Afterwards `recovery_point` equals `end_offset`; a checkpoint of it and the clean-shutdown
        marker spare the next start every check. A failed log only lets go of its files, and so does
        one that nothing was done to since an orderly end. What is still held was never
        acknowledged, and is forgotten. The last flush job must have ended. Raises StorageFailed.
        """
        try:
            if self.failure is None and not (self.untouched or self.as_it_was_opened):
                with suppress(DiskFull):
                    self.commit()
                self.sync_now()
                if not self.held:  # or the derived files would tell of it
                    self._write_derived()
                self._disk.sync_dir(self.path)
        except StorageFailed as failure:
            self.fail(failure)
            self.let_go()
            raise
        self.let_go()
