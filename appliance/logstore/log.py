"""The log of one partition: an active segment that takes batches, and the full ones before it.

    stage* → commit → locate          flush_job → run (any thread) → flushed
    follow → commit                   truncate_to

Invariant: `recovery_point` ≤ `end_offset`, and everything below it survives a power cut. See
`active` for what is staged and written, and for what the first StorageFailed and DiskFull mean.
Files that are derived from the records come late when there is no room. One thread owns a Log.
Hot functions: `stage`, `commit`, `locate`.
All offsets are record offsets, sizes bytes, times ms of the wall clock.
"""

from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import OFFSET_OUT_OF_RANGE, DiskFull, PeerError, StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore import fetched_batches, log_close, lookup, recovery, removal, truncation
from appliance.logstore.active import FULL, ActiveSegment, FileRange
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.flush import FlushJob
from appliance.logstore.journal import NOTHING, Continuation
from appliance.logstore.producer_snapshot import ProducerSnapshots, encode_snapshot
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.recovery import RecoveryCut, Start
from appliance.logstore.removal import Removal
from appliance.logstore.segment import Segment
from appliance.logstore.segments import LogSegments
from appliance.wire.batch_header import BatchHeader

SNAPSHOT_BATCHES: Final = 20_000
"""Batches after which a sync also writes the producer states: a start steps over as many in 20 ms.
"""


class PartitionLog:
    """active: the segment that takes batches. order: all of them. layout: moves when full segments
    are written anew and when the log goes back: positions hold for one layout. cleaning: the full
    ones are being compacted, so none is dropped. cut: what the opening took off the end, or None.
    copied_end: behind the last record that a remote store has, -1 for a log that is not tiered.
    """

    __slots__ = (
        "_disk",
        "active",
        "cleaning",
        "config",
        "copied_end",
        "cut",
        "epochs",
        "layout",
        "log_start_offset",
        "order",
        "path",
        "producers",
        "recovery_point",
        "saved_end",
        "snapshots",
        "unsynced",
    )

    def __init__(self, disk: Disk, path: str, config: LogConfig, start: Start) -> None:
        """Use `PartitionLog.create` or `PartitionLog.open`. Raises StorageFailed."""
        self._disk = disk
        self.path = path
        self.config = config
        self.log_start_offset = start.log_start_offset
        self.recovery_point = start.recovery_point
        self.snapshots: ProducerSnapshots = start.snapshots
        self.producers: ProducerStates = start.producers
        self.epochs: LeaderEpochs = start.epochs
        self.cut: RecoveryCut | None = start.cut
        self.layout = 0
        self.cleaning = False
        self.copied_end = -1
        self.saved_end = start.end_offset if start.saved else -1
        self.unsynced = start.unsynced
        self.order = LogSegments(disk, path, start.segments, config.index_interval_bytes)
        self.active = self.activated(start.segments[-1], start.end_offset)
        self.active.epoch = start.epochs.latest
        self.active.resume(start.tail, start.since_index, start.first_timestamp, start.now_ms)
        start.segments[-1] = self.active

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
    ) -> "PartitionLog":
        """A new log in the folder `path`, which is made.

        What a creation that was cut short left there is removed. The first flush makes the new one
        durable. The caller first drops what checkpoints say of an older partition of this name.
        Raises StorageFailed, also when the folder holds records already.
        """
        return cls(disk, path, config, recovery.create(disk, path, topic_id, start_offset))

    @classmethod
    def open_folder(
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
        continuation: Continuation = NOTHING,
    ) -> "PartitionLog":
        """The log in the folder `path` as it was left.

        recovery_point: below it everything was synced. clean: the last shutdown was orderly,
        nothing is checked. Otherwise CRC32C is checked from the recovery point on, a torn tail is
        cut off, and the rest is read back from the medium, written where it is not there, and
        synced: at return all of the log is on the disk. machine_lived: only the writer died since,
        so that its indexes are not torn. continuation: what journals hold of the log; it goes on
        with that where its own file ends.
        Raises StorageFailed when a file refuses, and when something that must be there is missing
        or damaged: then nothing was changed.
        """
        known = recovery.LogHints(recovery_point, log_start_offset, clean, machine_lived, now_ms)
        start = recovery.recover(disk, path, config, known, continuation)
        try:
            log = cls(disk, path, config, start)
            if log.recovery_point < log.end_offset:
                log.sync_now()
        except StorageFailed:
            for segment in start.segments:
                segment.rest()
            raise
        return log

    def activated(self, segment: Segment, end_offset: int) -> ActiveSegment:
        """`segment`, which is open for writing and has its indexes, as one that takes batches."""
        return ActiveSegment(
            self._disk, segment, end_offset, self.producers, self.unsynced, self.config
        )

    def set_config(self, config: LogConfig) -> None:
        """The topic's settings changed; they hold from the next batch on."""
        self.config = config
        self.order.interval = config.index_interval_bytes
        self.active.set_config(config)

    # What can be read of it -----------------------------------------------------------------------

    @property
    def disk(self) -> Disk:
        return self._disk

    @property
    def segments(self) -> list[Segment]:
        """All of them, oldest first; the last is the active one."""
        return self.order.all

    @property
    def failure(self) -> StorageFailed | None:
        """Why nothing works any more, or None."""
        return self.active.failure

    @property
    def end_offset(self) -> int:
        """Log end offset: what the next record gets."""
        return self.active.end_offset

    @property
    def local_start(self) -> int:
        """Local log start offset: what lies below it is in a remote store alone."""
        return max(self.log_start_offset, self.order.all[0].base)

    @property
    def written_end(self) -> int:
        """Behind the last record that is in the file."""
        return self.active.written_end

    @property
    def latest_epoch(self) -> int:
        """Leader epoch of what is staged."""
        return self.active.epoch

    @property
    def active_base(self) -> int:
        """The base offset of the segment in which the log ends."""
        return self.active.base

    @property
    def active_size(self) -> int:
        """How many bytes of it are written."""
        return self.active.size

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self.order.closed_size + self.active.size

    @property
    def has_unwritten(self) -> bool:
        """True if staged bytes are not written, between turns because the disk was full."""
        return self.active.has_unwritten

    @property
    def only_grew(self) -> bool:
        """True if only the end of the active segment needs a sync."""
        return self.failure is None and not (self.unsynced.pending or self.epochs.changed)

    @property
    def unsynced_bytes(self) -> int:
        """Committed bytes that a power cut may take."""
        return self.unsynced.appended + self.active.size - self.unsynced.synced

    # Append ---------------------------------------------------------------------------------------

    def stage(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> int:
        """Give a checked batch its offset, in place, and keep the view until `commit`.

        header: as it was sent. With LogAppendTime the batch gets `now_ms` as its time.
        Returns the base offset. Raises StorageFailed when a new segment could not be made; after
        DiskFull this batch was not staged. `active.stage` does the same where the active segment
        has room and knows the epoch.
        """
        base = self.active.stage(batch, header, leader_epoch, now_ms)
        while base < 0:
            self._make_way(base, leader_epoch, self.active.end_offset, now_ms)
            base = self.active.stage(batch, header, leader_epoch, now_ms)
        return base

    def _make_way(self, why: int, leader_epoch: int, base: int, now_ms: int) -> None:
        """Do what the active segment asks for before it takes the batch with offset `base`."""
        if why == FULL:
            self._roll(base)
        else:
            self.begin_epoch(leader_epoch, base)

    def follow(self, data: memoryview, now_ms: int, leader_epoch: int) -> int:
        """Stage batches as the leader of this epoch has them; keep the view until `commit`.

        data: the records of a leader's answer, which may end inside a batch. Offsets may have gaps,
        as compaction leaves them. Returns how many bytes are whole batches. Raises PeerError when
        they are damaged or would go backwards (`following.batches`): then nothing was staged.
        Raises StorageFailed; DiskFull when there is no room for a new segment: what came before is
        staged, and the follower fetches from the log end.
        """
        if self.failure is not None:
            raise self.failure
        taken = 0
        mine = self.end_offset, self.latest_epoch
        for batch, header in fetched_batches.batches(data, *mine, leader_epoch):
            base, epoch = header[0], header[2]
            while (got := self.active.stage(batch, header, epoch, now_ms, base)) < 0:
                self._make_way(got, epoch, base, now_ms)
            assert got == base, "what a leader wrote keeps its offset"
            taken += len(batch)
        return taken

    def commit(self) -> None:
        """Write what was staged and let go of the views. StorageFailed: none of it is there.
        DiskFull: none of it is there yet; copies of it are held for the next call."""
        self.active.commit()

    def begin_epoch(self, leader_epoch: int, start: int = -1) -> None:
        """Assigns this leader epoch to what is staged from now on (KIP-101). start: its start
        offset, if not the log end. The next flush writes it; recovery finds it in the batches.
        """
        self.active.epoch = leader_epoch
        begins = self.end_offset if start < 0 else start
        assert self.recovery_point <= begins, "the file alone knows of epochs below"
        self.epochs.assign(leader_epoch, begins, staged=start >= 0)

    def write_epochs(self) -> None:
        """Durable by the next flush. Its owner writes: a job would put older over newer ones."""
        try:
            self.epochs.keep_file(self._disk, self.path, self.unsynced)
        except StorageFailed as failure:
            self.fail(failure)
            raise

    def roll(self, now_ms: int) -> None:
        """Commit what is staged and begin a new segment; an empty active one stays. Raises
        StorageFailed; after DiskFull the active segment is the one that it was."""
        self.commit()
        if self.active.size:
            self._roll(self.end_offset)

    def _roll(self, base: int) -> None:
        """Begin a new segment at `base`, behind which the next batch comes."""
        self.commit()
        active, new = self.active, Segment(self.path, base, 0)
        assert base > active.base, "an empty segment takes any batch"
        try:
            active.close_times()
            active.write_indexes(self._disk)
            self.snapshots.write_snapshot(base, self.producers)
            new.create(self._disk)
        except DiskFull:
            raise
        except StorageFailed as failure:
            self.fail(failure)
            raise
        full = active.handed_over()
        self.active = self.activated(new, base)
        self.active.epoch = active.epoch
        self.order.roll(full, self.active)
        self.unsynced.folders_changed((self.path,))
        self.unsynced.rolled_over(full)

    # Go back --------------------------------------------------------------------------------------

    def take_back(self, now_ms: int) -> None:
        """Discards what is staged or held, for a log that must not grow later. Raises
        StorageFailed.
        """
        truncation.take_back(self, now_ms)

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Everything from `offset` on was never there, what is held included; the new log end.

        That is the start of the batch with `offset`, or the end of what lies before it; where that
        is below the log start `begin_anew`. The caller has let syncs, groups of a journal and
        cleanings end; has recovery point and log start durably at or below the new end (as is the
        base of the last segment that begins before `offset`); tells readers of the new `layout`
        before the next append. A journal may still have what goes, of an older leader epoch than
        what comes: whoever opens that truncates again. Raises StorageFailed, which is final.
        """
        return truncation.truncate_to(self, offset, now_ms)

    def begin_anew(self, offset: int) -> None:
        """Drop all of it: the log is empty and begins at `offset`, where the leader's does. As
        `truncate_to`, but the recovery point is durably 0: for a moment there is no segment."""
        truncation.begin_anew(self, offset)

    # Find -----------------------------------------------------------------------------------------

    def locate(self, offset: int, max_bytes: int, limit_offset: int) -> FileRange | None:
        """Where the batches from the one with `offset` on lie; None: none below `limit_offset`.

        limit_offset: the high watermark; the range ends before the batch that contains it, and
        with its segment. All batches are whole, the first one also when it exceeds `max_bytes`.
        Raises PeerError(OFFSET_OUT_OF_RANGE) outside log start to log end, StorageFailed.
        """
        active = self.active
        if not self.log_start_offset <= offset <= active.end_offset:
            raise PeerError(
                OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside {self.log_start_offset} to {active.end_offset}, "
                "log start and log end; begin at the earliest or latest offset",
            )
        if offset >= limit_offset:
            return None
        found = active.locate(offset, max_bytes, limit_offset)
        if found is None:
            return lookup.locate(self.order, active, offset, max_bytes, limit_offset)
        return found if found[2] > 0 else None

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to `epoch` and the offset behind its last record (KIP-279);
        (-1, -1) when that is not known."""
        return self.epochs.end_of(epoch, self.written_end)

    def offset_for_timestamp(
        self, timestamp: int, limit_offset: int
    ) -> tuple[int, int, int] | None:
        """The first record below `limit_offset` that is not older, as (timestamp, offset, epoch).

        Raises StorageFailed, and PeerError when the batch that holds it cannot be opened.
        """
        start = self.log_start_offset
        return lookup.offset_for_timestamp(self.order, timestamp, limit_offset, start)

    def max_timestamp(self) -> tuple[int, int, int] | None:
        """The first record with the newest timestamp, as (timestamp, offset, epoch)."""
        return lookup.max_timestamp(self.order, self.end_offset, self.log_start_offset)

    # Sync -----------------------------------------------------------------------------------------

    def flush_job(self) -> FlushJob | None:
        """Returns what must be synced now, or None. One at a time: `flushed` or `fail` ends it.
        Raises the StorageFailed that ended the log.
        """
        active, unsynced = self.active, self.unsynced
        if active.failure is not None:
            raise active.failure
        end = active.written_end
        if self.epochs.changed:
            self.write_epochs()
        if self.recovery_point >= end and not unsynced.folders:
            return None
        job = unsynced.begin_flush(self._disk, end, active, active.size)
        if active.unsaved >= SNAPSHOT_BATCHES and not active.has_unwritten:
            job.snapshot = self.snapshots.path(end), encode_snapshot(self.producers)
            job.stale = self.snapshots.add_snapshot(end)
            active.unsaved = 0
        return job

    def flushed(self, job: FlushJob) -> None:
        """`job` has run: the recovery point moves to its end offset."""
        for segment in self.unsynced.end_flush(job):
            self.order.let_rest(segment)
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

    def is_synced(self, segment: Segment) -> bool:
        """True if a full segment and all its files are on the disk."""
        return segment is not self.active and segment not in self.unsynced.rolled

    def fail(self, failure: StorageFailed) -> None:
        """A file of this log refused: the log is over. What was staged is forgotten."""
        self.active.fail(failure)

    # Shrink ---------------------------------------------------------------------------------------

    def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are gone for readers; whole segments go with the next `retain`."""
        assert offset <= self.written_end, (offset, self.written_end)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.cut_start(offset)

    def join_remote(self, start: int, copied_end: int) -> None:
        """The records from `start` on and below `copied_end` are in a remote store, those before
        the first segment in that alone: the log starts with them."""
        assert start >= 0 and copied_end >= 0
        self.copied_end = copied_end
        if self.order.all[0].base <= copied_end:
            self.log_start_offset = min(self.log_start_offset, start)

    def retain(self, now_ms: int, high_watermark: int) -> list[Removal]:
        """Drop old segments as retention.ms, retention.bytes and the log start say.

        Returns what to remove when. Raises StorageFailed. See `removal.retain`.
        """
        if self.failure is not None:
            raise self.failure
        try:
            return [] if self.cleaning else removal.retain(self, now_ms, high_watermark)
        except DiskFull:
            raise
        except StorageFailed as failure:
            self.fail(failure)
            raise

    @property
    def has_trimmed_segments(self) -> bool:
        """True if a whole segment lies below the log start (`advance_log_start`)."""
        behind = self.segments[1].base if len(self.segments) > 1 else self.end_offset
        return behind <= self.log_start_offset and self.size > 0

    # The end --------------------------------------------------------------------------------------

    def delete(self, unique: str, now_ms: int, *, sync: bool = True) -> Removal:
        """Let go of the files and rename the folder to <name>.<unique>-delete, durably; without
        `sync` the caller syncs what the folder lies in. On any thread that has the log for itself.

        The last flush job must have ended. Raises StorageFailed.
        """
        self.let_go()
        due_ms = now_ms + self.config.file_delete_delay_ms
        return removal.delete(self._disk, self.path, unique, due_ms, sync=sync)

    def close(self) -> None:
        """Sync everything, indexes and producer states included, and let go of all files.

        Afterwards `recovery_point` equals `end_offset`; a checkpoint of it and the clean-shutdown
        marker spare the next start every check. A failed log only lets go of its files, and so does
        one that nothing was done to since an orderly end. What is still held was never
        acknowledged, and is forgotten. The last flush job must have ended. Raises StorageFailed.
        """
        log_close.close_log(self)

    def let_go(self) -> None:
        """Close every file; every later call raises StorageFailed."""
        if self.failure is None:
            assert self.unsynced.job is None, "a sync is under way"
            self.active.failure = StorageFailed(self.path, 0, "the log is closed")
        for segment in self.unsynced.rolled:
            segment.rest()
        self.order.rest_all()
