"""`__cluster_metadata-0` as a log: batches appended, read and cut off, and what of them is durable.

Invariant: `durable` moves only after an fdatasync covers it. Before a new segment, and before and
behind the first batch of a leader epoch, all that was appended is on the disk: so only the end of
the log can be torn, and only within its newest epoch. What the records mean, who leads and what is
committed is not asked here (`metadata_quorum.py`). The files have KRaft's framing: Apache Kafka's
tools read them, and its controller can take them over.
"""

from collections.abc import Iterator
from errno import EBADMSG
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.ids import TopicId
from appliance.config.log_config import NEVER, LogConfig
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum.log_damage import ALONE, OF_SEVERAL, refuse_damage
from appliance.logstore.flush import FlushJob
from appliance.logstore.log import PartitionLog
from appliance.logstore.partition_metadata import write_metadata
from appliance.metadata import files
from appliance.metadata.follower import LOG_FOLDER, decode_record
from appliance.wire import control_records as control
from appliance.wire.batch import BatchHeader, NewRecord, build_batch, iter_records, read_header

METADATA_TOPIC_ID: Final = TopicId(bytes(15) + b"\x01")
READ_BYTES: Final = 1 << 20


def batch_of(values: list[NewRecord], epoch: int, *, is_control: bool = False) -> memoryview:
    """One batch as it is appended, which gives it its offset."""
    return memoryview(bytearray(build_batch(values, leader_epoch=epoch, control=is_control)))


def decoded(batch: memoryview) -> list[object]:
    """The records of a batch, which has one for each of its offsets."""
    return [decode_record(record.value or b"") for record in iter_records(batch)]


def control_messages(batch: memoryview) -> list[control.ControlRecord]:
    """The messages of a control batch."""
    return [control.decode(record.key, record.value) for record in iter_records(batch)]


class MetadataLog:
    """durable: exclusive end of what a power cut cannot take. last_ms: time of the newest batch
    that was appended. recovered: what was damaged and could be had from a snapshot."""

    __slots__ = (
        "_before",
        "_disk",
        "_epoch",
        "_log",
        "durable",
        "folder",
        "last_ms",
        "recovered",
        "start_epoch",
    )

    def __init__(self, disk: Disk, folder: str, log: PartitionLog, before: int) -> None:
        """before: epoch of the last record that a snapshot has and the log has not.

        start_epoch: the epoch of the record before the first one; where no snapshot ends there,
        the oldest one that is known, which is not older."""
        self._disk = disk
        self._log = log
        self._epoch = log.latest_epoch  # of the newest batch
        self._before = self.start_epoch = before
        self.folder = folder
        self.durable = log.end_offset
        self.last_ms = 0
        self.recovered = ""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.end_offset

    @property
    def start_offset(self) -> int:
        """The offset of the first record."""
        return self._log.log_start_offset

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, 0 when there never was one."""
        return max(self._log.latest_epoch, self._before)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` that stands in the log and the offset behind its last
        record (KIP-279)."""
        found, end = self._log.epoch_end(epoch)
        return (self.last_epoch, self.end_offset) if found < 0 else (found, end)

    @property
    def newest_snapshot(self) -> tuple[int, int]:
        """(end, epoch) of the newest one in the folder, (0, 0): there is none."""
        known = files.snapshots(self._disk, self.folder)
        return known[-1] if known else (0, 0)

    @property
    def unsynced(self) -> bool:
        """True if an appended record is not durable."""
        return self._log.end_offset > self.durable

    def append(self, batch: memoryview, epoch: int, now_ms: int) -> int:
        """Append one batch (`batch_of`), which counts as a whole or not at all: its base offset.

        Not durable before a sync. Raises StorageFailed; after DiskFull nothing of it is there and
        the log goes on."""
        header = read_header(batch)
        active = self._log.active
        begins = epoch != self._epoch
        rolls = active.position + len(batch) > active.roll_size
        if self.unsynced and (rolls or begins):
            self._settle()
        base = self._log.stage(batch, header, epoch, now_ms)
        try:
            self._log.commit()
        except DiskFull:  # whoever asked is told that it is not done: it must not come later
            self._log.take_back(now_ms)
            assert self._log.latest_epoch == self._epoch, "an epoch is known by its batches alone"
            raise
        assert not self._log.has_unwritten
        if begins:
            self._epoch = epoch
            self._settle()
        assert base + header.last_offset_delta + 1 == self._log.end_offset
        self.last_ms = now_ms
        return base

    def _settle(self) -> None:
        """Syncs all that is appended, whether another sync is under way or not. Behind a gap that a
        power cut left, a segment or an epoch would make a start believe in damage
        (`log_damage.py`). Raises StorageFailed, which is final.
        """
        log = self._log
        try:
            for segment in (*log.unsynced.rolled, log.active):
                assert segment.file is not None, "it stays open until it is synced"
                segment.file.sync()
        except StorageFailed as failure:
            log.fail(failure)
            raise

    def read(self, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The batches from the one with `start` to `end`, whether durable or not. Raises
        StorageFailed."""
        while start < end:
            found = self._log.locate(start, READ_BYTES, end)
            assert found is not None, (start, end)
            base, position, length, _ = found
            data = memoryview(
                files.read_at(self._disk, f"{self.folder}/{base:020d}.log", position, length)
            )
            at = 0
            while at < length and start < end:
                header = read_header(data, at)
                if at + header.size > length:
                    break  # cut off: the next reading begins with it
                assert header.base_offset <= start <= header.last_offset, (header, start)
                yield header, data[at : at + header.size]
                at += header.size
                start = header.last_offset + 1

    def truncate(self, offset: int, now_ms: int) -> None:
        """Truncates to `offset`, because the leader's log diverges there. No sync is under way.
        Raises StorageFailed, which is final.
        """
        log = self._log
        log.recovery_point = min(log.recovery_point, offset)  # which is in memory alone
        log.truncate_to(offset, now_ms)
        assert log.end_offset == offset, "it begins a batch"
        self._epoch = log.latest_epoch
        self.durable = min(self.durable, offset)

    def sync(self) -> None:
        """Everything appended is on the disk at return. Raises StorageFailed, which is final."""
        self._log.sync_now()
        self.durable = self._log.end_offset

    def begin_sync(self) -> FlushJob | None:
        """Returns a job, for any thread, that makes all appended records durable; call `end_sync`
        after it. One at a time; appending goes on meanwhile. Raises StorageFailed, which is final.
        """
        return self._log.flush_job()

    def end_sync(self, job: FlushJob, failure: Exception | None) -> None:
        """The job has run: what it covers is durable. Raises its failure, which is final."""
        if failure is not None:
            if isinstance(failure, StorageFailed):
                self._log.fail(failure)
            raise failure
        self._log.flushed(job)
        assert self.durable <= job.end_offset <= self._log.end_offset
        self.durable = job.end_offset

    def advance_start(self, offset: int, now_ms: int) -> None:
        """A snapshot has what is below: whole segments of it go. Raises StorageFailed."""
        assert offset <= self.durable, (offset, self.durable)
        if offset > self._log.log_start_offset:
            self.start_epoch = max(self._log.epochs.epoch_of(offset - 1), self.start_epoch)
            self._log.advance_log_start(offset)
            for removal in self._log.retain(now_ms, self.durable):
                removal.run(self._disk)

    def close(self) -> None:
        """The end of an orderly run."""
        self._log.close()


def open_log(
    disk: Disk,
    data_dir: str,
    segment_bytes: int,
    now_ms: int,
    *,
    clean: bool = False,
    alone: bool = True,
) -> MetadataLog:
    """Open or create the log; all of it is durable then. segment_bytes: size of its files. clean:
    the last shutdown was orderly, so nothing can be torn. alone: nobody else has it, so damage that
    a snapshot makes up for can be mended. Raises StorageFailed."""
    folder = f"{data_dir}/{LOG_FOLDER}"
    config = LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=NEVER,
        retention_ms=-1,
        file_delete_delay_ms=0,
        max_message_bytes=segment_bytes,
    )
    known = files.snapshots(disk, folder)
    durable = known[-1].offset if known else 0
    bases = files.segments(disk, folder)
    if not bases:
        bases = [durable]
        _make_folder(disk, data_dir, folder, durable)
    recovered = ""
    try:
        remedy = ALONE if alone else OF_SEVERAL
        refuse_damage(disk, folder, bases, durable=durable, clean=clean, remedy=remedy)
    except StorageFailed as damage:
        if not alone:
            raise  # others agreed on other offsets than those of a repaired log
        saved = repair.plan(disk, data_dir)
        if not saved.lossless:
            raise
        old = repair.carry_out(disk, data_dir, saved, now_ms)
        recovered = f"{damage}; all of it was in a snapshot, the old files are in {old}"
        durable = saved.end + 1
        bases = [durable]
        _make_folder(disk, data_dir, folder, durable)
    log = PartitionLog.open_folder(
        disk,
        folder,
        config,
        recovery_point=max(durable, bases[0]),
        log_start_offset=bases[0],
        clean=False,
        machine_lived=False,
        now_ms=now_ms,
    )
    log.sync_now()
    known = [one for one in files.snapshots(disk, folder) if one.offset <= log.log_start_offset]
    made = MetadataLog(disk, folder, log, known[-1].epoch if known else 0)
    if log.log_start_offset and not (known and known[-1].offset == log.log_start_offset):
        made.start_epoch = max([made.start_epoch, *log.epochs.epochs[:1]])
    made.recovered = recovered
    return made


def whole(disk: Disk, data_dir: str) -> bool:
    """True if nothing in the log is damaged, a torn tail included. Raises StorageFailed when it
    cannot be read.
    """
    folder = f"{data_dir}/{LOG_FOLDER}"
    known, bases = files.snapshots(disk, folder), files.segments(disk, folder)
    try:
        durable = known[-1].offset if known else 0
        refuse_damage(disk, folder, bases, durable=durable, clean=True)
    except StorageFailed as damage:
        if damage.errno != EBADMSG:
            raise
        return False
    return bool(bases or known)


def _make_folder(disk: Disk, data_dir: str, folder: str, base: int) -> None:
    """An empty log that begins at `base`; a snapshot that formatting left in the folder stays."""
    if not disk.exists(folder):
        disk.mkdir(folder)
    write_metadata(disk, folder, METADATA_TOPIC_ID)
    file = disk.create(f"{folder}/{base:020d}.log")
    file.sync()
    file.close()
    disk.sync_dir(folder)
    disk.sync_dir(data_dir)
