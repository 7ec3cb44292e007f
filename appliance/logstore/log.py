"""The log of one partition: segments of record batches, appended, found, synced.

    stage* → commit → locate          flush_job → run (any thread) → flushed

Invariant: what lies below `active_size` of the active segment and in the older ones is whole batches with ascending
offsets; `recovery_point` ≤ `end_offset`, and everything below it survives a power cut. The first StorageFailed is
final: every later call raises it again, and what was staged was never there. One thread owns a Log.
Hot functions: `stage`, `commit`, `locate`. All offsets are record offsets, sizes bytes, times ms.
"""

from bisect import bisect_right
from struct import Struct
from typing import Final
from zlib import crc32

from appliance.base.disk import Disk, write_file
from appliance.base.errors import OFFSET_OUT_OF_RANGE, PeerError, StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore import files, lookup, recovery, removal
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.flush import FlushJob
from appliance.logstore.indexes import OFFSET_ENTRY, OffsetIndex, TimeIndex
from appliance.logstore.producer_snapshot import encode_snapshot
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.removal import Removal
from appliance.logstore.segment import Segment
from appliance.wire.batch import stamp_log_append_time
from appliance.wire.batch_header import HEADER_SIZE, LENGTH_PREFIX, BatchHeader, read_header

FileRange = tuple[int, int, int, int]
"""(base offset of the segment, position in its file, length, length of the first batch)."""

TAIL: Final = 4096
"""How many of the newest batches are found without reading."""

INDEX_WRITE: Final = 512
"""Index entries gathered before they are written to the file."""

SNAPSHOT_BATCHES: Final = 20_000
"""Batches after which a sync also writes the producer states: about as many as a start reads in 20 ms."""

_PATCH: Final = Struct(">qii")  # base offset, batch length, leader epoch
_FARTHEST: Final = (1 << 31) - 1
_NEVER: Final = 1 << 63


class Log:
    """end_offset: log end offset, what the next record gets. (active_base, active_size) is where the log ends: what
    `open` calls known_end. failure: why nothing works any more, or None."""

    __slots__ = (
        "_appended_before",
        "_closed_size",
        "_committed_end",
        "_disk",
        "_folders",
        "_index",
        "_interval",
        "_job",
        "_newest",
        "_newest_offset",
        "_position",
        "_roll_offset",
        "_roll_size",
        "_roll_time",
        "_rolled",
        "_since_index",
        "_since_snapshot",
        "_snapshots",
        "_stamps",
        "_synced",
        "_tail_offsets",
        "_tail_positions",
        "_times",
        "_views",
        "active",
        "active_base",
        "active_size",
        "config",
        "end_offset",
        "epochs",
        "failure",
        "latest_epoch",
        "log_start_offset",
        "path",
        "producers",
        "recovery_point",
        "resting",
        "segments",
    )

    def __init__(self, disk: Disk, path: str, config: LogConfig, log_start_offset: int) -> None:
        """An empty shell; use `create` or `open`."""
        self._disk = disk
        self.path = path
        self.log_start_offset = log_start_offset
        self.recovery_point = self.end_offset = self._committed_end = log_start_offset
        self.segments: list[Segment] = []
        self.resting: list[Segment] = []
        self.epochs = LeaderEpochs()
        self.latest_epoch = -1
        self.producers = ProducerStates()
        self.failure: StorageFailed | None = None
        self.active_base = self.active_size = self._position = 0
        self._closed_size = self._appended_before = self._synced = 0
        self._since_index = self._since_snapshot = 0
        self._newest = self._newest_offset = -1
        self._views: list[memoryview] = []
        self._tail_offsets: list[int] = []
        self._tail_positions: list[int] = []
        self._rolled: list[Segment] = []
        self._folders: list[str] = []
        self._snapshots: list[int] = []
        self._job: FlushJob | None = None
        self._roll_offset = self._roll_size = 0
        self._roll_time = _NEVER
        self._index, self._times = OffsetIndex(), TimeIndex()
        self.set_config(config)

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
        """A new log in the folder `path`, which is made; what a creation that was cut short left there is removed.

        The first flush makes it durable. The caller first drops what checkpoints say of an older partition of this
        name. Raises StorageFailed, also when the folder holds records already.
        """
        log = cls(disk, path, config, start_offset)
        recovery.create(log, topic_id, now_ms)
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
        known_end: tuple[int, int] | None,
        now_ms: int,
    ) -> "Log":
        """The log in the folder `path` as it was left.

        recovery_point: below it everything was synced. clean: the last shutdown was orderly, nothing is checked.
        known_end: the segment and position up to which the writer had written, when it died and the machine did
        not; only what follows is checked. Otherwise CRC32C is checked from the recovery point on. A torn tail is
        cut off. Raises StorageFailed when a file refuses, and when something below the recovery point is missing
        or damaged: then nothing was changed.
        """
        log = cls(disk, path, config, log_start_offset)
        try:
            recovery.Recovery(log, recovery_point, clean, known_end).run(now_ms)
        except StorageFailed as failure:
            log.fail(failure)
            raise
        return log

    def adopt(
        self,
        segments: list[Segment],
        end_offset: int,
        recovery_point: int,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        snapshots: list[int],
        tail: tuple[list[int], list[int]],
        since_index: int,
    ) -> None:
        """Take over what recovery found. The last segment is open for writing and has its indexes."""
        self.segments = segments
        self.log_start_offset = max(self.log_start_offset, segments[0].base)
        self.recovery_point = recovery_point
        self.epochs, self.latest_epoch = epochs, epochs.latest
        self.producers = producers
        self._snapshots = snapshots
        self._since_snapshot = producers.updates
        self._closed_size = sum(segment.size for segment in segments[:-1])
        for segment in segments[:-1]:
            if segment.file is None:
                continue
            if recovery_point < end_offset and segment.index is not None:
                self._rolled.append(segment)
                self._appended_before += segment.size
            else:
                segment.rest()
        self._activate(segments[-1], end_offset)
        self._tail_offsets, self._tail_positions = tail[0][-TAIL:], tail[1][-TAIL:]
        self._since_index = since_index
        if recovery_point >= end_offset:
            self._synced = self._appended_before + self.active_size
        if self.active_size:
            file = self.active.file
            assert file is not None
            first = read_header(file.pread(HEADER_SIZE, 0)).max_timestamp
            if first >= 0:
                self._roll_time = first + self._segment_ms()

    def begin_segment(self, base: int, now_ms: int) -> None:
        """Make the files of a new active segment."""
        segment = Segment(self.path, base, 0)
        segment.create(self._disk)
        self.segments.append(segment)
        self._activate(segment, base)
        self.folders_changed(self.path)

    def _activate(self, segment: Segment, end_offset: int) -> None:
        """From now on `segment` takes the batches."""
        assert segment.index is not None and segment.times is not None
        self.active = segment
        self.active_base = segment.base
        self.active_size = self._position = segment.size
        self.end_offset = self._committed_end = end_offset
        self._index, self._times = segment.index, segment.times
        self._newest, self._newest_offset = segment.newest, segment.newest_offset
        self._roll_time = _NEVER
        self._since_index = 0
        self._tail_offsets, self._tail_positions = [], []
        self._set_limits()

    def folders_changed(self, *paths: str) -> None:
        """These folders have new names in them that the next flush must make durable."""
        for path in paths:
            if path not in self._folders:
                self._folders.append(path)

    def set_config(self, config: LogConfig) -> None:
        """The topic's settings changed; they hold from the next batch on."""
        self.config = config
        self._stamps = config.message_timestamp_type == "LogAppendTime"
        self._interval = config.index_interval_bytes
        if self.segments:
            self._set_limits()

    @property
    def disk(self) -> Disk:
        return self._disk

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self._closed_size + self.active_size

    @property
    def unsynced_bytes(self) -> int:
        """Committed bytes that a power cut may take."""
        return self._appended_before + self.active_size - self._synced

    @property
    def newest(self) -> int:
        """The newest timestamp in the active segment, -1 when its records have none."""
        return self._newest

    def tail_position(self, offset: int) -> int:
        """Where the batch that contains `offset` begins in the active segment, -1 when it must be read."""
        if offset >= self._committed_end:
            return self.active_size
        at = bisect_right(self._tail_offsets, offset) - 1
        return self._tail_positions[at] if at >= 0 else -1

    # Append ---------------------------------------------------------------------------------------

    def stage(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> int:
        """Give a checked batch its offset, in place, and keep the view until `commit`; returns the base offset.

        header: as it was sent. For topics with LogAppendTime the batch gets `now_ms` as its time.
        Raises StorageFailed when a new segment was due and could not be made.
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
            if self._roll_time == _NEVER:
                self._roll_time = newest + self._segment_ms()
            self._newest = newest
            self._newest_offset = last
        since = self._since_index
        if since > self._interval:
            self._index_entry(last, position)
            since = 0
        self._since_index = since + size
        if leader_epoch != self.latest_epoch:
            self._new_epoch(leader_epoch, base)
        if header[9] >= 0:
            self.producers.update(header, base)
        self._tail_offsets.append(base)
        self._tail_positions.append(position)
        self._views.append(batch)
        self._position = position + size
        self.end_offset = last + 1
        return base

    def commit(self) -> None:
        """Write what was staged and let go of the views. Raises StorageFailed: then none of it is there."""
        if self.failure is not None:
            raise self.failure
        views = self._views
        if not views:
            return
        file = self.active.file
        assert file is not None
        try:
            file.pwritev(views, self.active_size)
        except StorageFailed as failure:
            self.fail(failure)
            raise
        self._since_snapshot += len(views)
        views.clear()
        self.active_size = self._position
        self._committed_end = self.end_offset
        if len(self._tail_offsets) > 2 * TAIL:
            del self._tail_offsets[:TAIL], self._tail_positions[:TAIL]

    def fail(self, failure: StorageFailed) -> None:
        """A file of this log refused: the log is over. What was staged is forgotten."""
        if self.failure is None:
            self.failure = failure
        self._views.clear()
        self.end_offset = self._committed_end
        self._position = self.active_size

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
            except StorageFailed as failure:
                self.fail(failure)
                raise

    def _new_epoch(self, leader_epoch: int, base: int) -> None:
        self.epochs.assign(leader_epoch, base)
        self.latest_epoch = leader_epoch

    # Roll -----------------------------------------------------------------------------------------

    def _segment_ms(self) -> int:
        """How long a segment takes batches; the jitter is a fixed draw, so that a restart does not change it."""
        config = self.config
        jitter = min(config.segment_jitter_ms, config.segment_ms)
        if jitter <= 0:
            return config.segment_ms
        return config.segment_ms - crc32(self.active.stem.encode()) % jitter

    def _set_limits(self) -> None:
        """What a batch must not exceed to go into the active segment."""
        self._roll_size = self.config.segment_bytes
        self._roll_offset = self.active_base + _FARTHEST

    def roll(self, now_ms: int) -> None:
        """Commit what is staged and begin a new segment. Does nothing while the active one is empty."""
        end = self.end_offset
        self.commit()
        if not self.active_size:
            return
        active = self.active
        try:
            active.size = self.active_size
            active.newest, active.newest_offset = self._newest, self._newest_offset
            self._times.append(self._newest, max(self._newest_offset - self.active_base, 0))
            active.write_indexes(self._disk)
            self.take_snapshot()
            self._closed_size += active.size
            self._appended_before += active.size
            self._rolled.append(active)
            self.begin_segment(end, now_ms)
        except StorageFailed as failure:
            self.fail(failure)
            raise

    # Find -----------------------------------------------------------------------------------------

    def locate(self, offset: int, max_bytes: int, limit_offset: int) -> FileRange | None:
        """Where the batches from the one with `offset` on lie; None when nothing below `limit_offset` is there.

        limit_offset: the high watermark; the range ends before the batch that contains it, and with its segment.
        The first batch is always whole, the last one may be cut at `max_bytes`.
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
        """The largest leader epoch up to `epoch` and the offset behind its last record (KIP-279); (-1, -1): unknown."""
        return self.epochs.end_of(epoch, self._committed_end)

    def offset_for_timestamp(
        self, timestamp: int, limit_offset: int
    ) -> tuple[int, int, int] | None:
        """The first record below `limit_offset` that is not older: (timestamp, offset, leader epoch), or None.

        Raises StorageFailed, and PeerError when the batch that holds it cannot be opened.
        """
        return lookup.offset_for_timestamp(self, timestamp, limit_offset)

    def max_timestamp(self) -> tuple[int, int, int] | None:
        """The first record with the newest timestamp: (timestamp, offset, leader epoch); None in an empty log."""
        return lookup.max_timestamp(self)

    # Sync -----------------------------------------------------------------------------------------

    def flush_job(self) -> FlushJob | None:
        """What must be synced now, None when nothing must. One job at a time: `flushed` or `fail` ends it."""
        if self.failure is not None:
            raise self.failure
        assert self._job is None, "the last job has not ended"
        end = self._committed_end
        if self.recovery_point >= end and not self._folders and not self.epochs.changed:
            return None
        file = self.active.file
        assert file is not None
        job = FlushJob(self._disk, end, self._appended_before + self.active_size, [file])
        if self._rolled or self._folders or self.epochs.changed:
            self._widen(job)
        if self._since_snapshot >= SNAPSHOT_BATCHES:
            job.derived += ((self._snapshot_path(end), encode_snapshot(self.producers), True),)
            job.stale = self._note_snapshot(end)
        self._job = job
        return job

    def _widen(self, job: FlushJob) -> None:
        """What a job has to do besides the active segment, after a roll or a new epoch."""
        for segment in reversed(self._rolled):
            assert segment.file is not None
            job.files.insert(0, segment.file)
            job.paths += (segment.stem + files.INDEX, segment.stem + files.TIME_INDEX)
        job.rolled = len(self._rolled)
        if self.epochs.changed:
            self.epochs.changed = False
            path = f"{self.path}/{files.LEADER_EPOCHS}"
            job.derived += ((path, self.epochs.encode(), True),)
        job.folders = tuple(self._folders)
        self._folders.clear()

    def flushed(self, job: FlushJob) -> None:
        """`job` has run: the recovery point moves to its end offset."""
        assert job is self._job
        self._job = None
        self.recovery_point = max(self.recovery_point, job.end_offset)
        self._synced = job.appended
        if job.rolled:
            for segment in self._rolled[: job.rolled]:
                lookup.let_rest(self, segment)
            del self._rolled[: job.rolled]

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

    def _snapshot_path(self, offset: int) -> str:
        return files.stem(self.path, offset) + files.SNAPSHOT

    def _note_snapshot(self, offset: int) -> tuple[str, ...]:
        """A snapshot is made at `offset`; the paths of those that are needed no more."""
        self._since_snapshot = 0
        known = self._snapshots
        if not known or known[-1] < offset:
            known.append(offset)
        stale = tuple(self._snapshot_path(old) for old in known[:-2])
        del known[:-2]
        return stale

    def take_snapshot(self) -> None:
        """Write the producer states as of the log end; only the two newest snapshots are kept."""
        end = self._committed_end
        path = self._snapshot_path(end)
        write_file(self._disk, path, encode_snapshot(self.producers), sync=False)
        for stale in self._note_snapshot(end):
            if self._disk.exists(stale):
                self._disk.unlink(stale)

    # Shrink ---------------------------------------------------------------------------------------

    def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are gone for readers; whole segments go with the next `retain`."""
        assert offset <= self._committed_end, (offset, self._committed_end)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.cut_start(offset)

    def retain(self, now_ms: int, high_watermark: int) -> list[Removal]:
        """Drop old segments by Kafka's rules (retention.ms, retention.bytes, log start); see `removal.retain`."""
        return removal.retain(self, now_ms, high_watermark)

    def delete(self, unique: str, now_ms: int) -> Removal:
        """Close the log and rename its folder to <name>.<unique>-delete. The Removal says when to remove it."""
        self._let_go()
        return removal.delete(self, unique, now_ms)

    def drop_oldest(self) -> None:
        """Forget the first segment, which is synced and not the active one."""
        segment = self.segments.pop(0)
        assert segment is not self.active and segment not in self._rolled
        if segment in self.resting:
            self.resting.remove(segment)
        segment.rest()
        self._closed_size -= segment.size

    def close(self) -> None:
        """Sync everything, indexes and producer states included, and let go of all files.

        Afterwards `recovery_point` equals `end_offset`; a checkpoint with it and the clean-shutdown marker
        spare the next start every check. Of a failed log only the files are let go.
        """
        if self.failure is None:
            self.commit()
            self.sync_now()
            self._times.append(self._newest, max(self._newest_offset - self.active_base, 0))
            self.active.write_indexes(self._disk, sync=True)
            self.take_snapshot()
            self._disk.sync_dir(self.path)
        self._let_go()

    def _let_go(self) -> None:
        """Close every file. The last job must have ended: it may be using one of them."""
        assert self._job is None, "a sync is under way"
        for segment in (*self.segments, *self._rolled):
            segment.rest()
        self.resting.clear()
        if self.failure is None:
            self.failure = StorageFailed(self.path, 0, "the log is closed")
