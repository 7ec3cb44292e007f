"""`__cluster_metadata-0` as its only voter and leader writes it.

Invariant: the image has replayed exactly what was appended, and `committed` moves only after an
fdatasync covers it; nobody is answered before that. The files have KRaft's framing: Apache Kafka's
tools read them, and its controller can take them over. Control is the only caller.
"""

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from errno import EBADMSG
from typing import Final

from appliance.base.disk import Disk, write_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.ids import TopicId
from appliance.config.log_config import NEVER, LogConfig
from appliance.control import quorum_state, repair
from appliance.control.damage import refuse_damage
from appliance.logstore.flush import FlushJob
from appliance.logstore.log import Log
from appliance.logstore.recovery import write_metadata
from appliance.metadata import checkpoint, files
from appliance.metadata.changes import Change
from appliance.metadata.checkpoint import SnapshotId, VoterSet, control_record
from appliance.metadata.follower import LOG_FOLDER, Follower
from appliance.metadata.image import MetadataImage
from appliance.metadata.record_versions import encode
from appliance.wire import control_records as control
from appliance.wire.batch import NewRecord, build_batch, read_header

METADATA_TOPIC_ID: Final = TopicId(bytes(15) + b"\x01")
KEEP_SNAPSHOTS: Final = 2
_TRY_AGAIN_MS: Final = 60_000


@dataclass(slots=True, frozen=True)
class Unwritten:
    """A snapshot that is to be written: of an image that nobody changes, with the bytes of the log
    that it spares."""

    snapshot: SnapshotId
    image: MetadataImage
    quorum: VoterSet
    now_ms: int
    last_ms: int
    log_bytes: int

    def write(self, disk: Disk, folder: str) -> None:
        """Write the file, durably; on any thread. Raises StorageFailed."""
        pieces = checkpoint.write(
            self.image,
            self.snapshot,
            self.quorum,
            now_ms=self.now_ms,
            last_log_timestamp=self.last_ms,
        )
        write_file(disk, f"{folder}/{self.snapshot.file_name}", b"".join(pieces))


@dataclass(slots=True, frozen=True)
class Limits:
    """When a snapshot is due, and how large segments get; bytes, and ms (0: never)."""

    snapshot_bytes: int
    snapshot_ms: int
    segment_bytes: int


class MetadataLog:
    """image: the replayed cluster. epoch: the one this node leads. committed: exclusive end.
    recovered: what was damaged and could be had from a snapshot."""

    def __init__(
        self, disk: Disk, folder: str, node_id: int, log: Log, follower: Follower, limits: Limits
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._node_id = node_id
        self._log = log
        self._limits = limits
        self._last_ms = 0
        self._snapshot_ms = 0
        self._again_ms = 0  # not before, after a snapshot that failed
        self._bytes = follower.bytes_replayed  # in the log since the last snapshot
        self.image: MetadataImage = follower.image
        self.quorum: VoterSet = follower.quorum
        self.epoch = 0
        self.committed = log.end_offset
        self.recovered = ""

    @property
    def end_offset(self) -> int:
        """What the next record gets."""
        return self._log.end_offset

    @property
    def active_size(self) -> int:
        """Bytes of the active segment."""
        return self._log.active_size

    @property
    def uncommitted(self) -> bool:
        """Whether something was appended that is not synced."""
        return self._log.end_offset > self.committed

    def lead(self, now_ms: int) -> None:
        """Begin a new epoch: say so in quorum-state, then in the log (KIP-595). Raises
        StorageFailed; DiskFull means that it can be tried again."""
        before = max(quorum_state.read_epoch(self._disk, self._folder), self.image.epoch)
        self.epoch = before + 1
        with suppress(DiskFull):  # the only voter's log says it before anybody else can know
            quorum_state.write(
                self._disk,
                self._folder,
                leader_id=self._node_id,
                epoch=self.epoch,
                dynamic=self.quorum.kraft_version > 0,
            )
        self._snapshot_ms = now_ms
        voters = tuple(
            control.Voter(voter_id=voter) for voter, _ in self.quorum.voters(self._node_id)
        )
        change = control.LeaderChangeMessage(
            version=0, leader_id=self._node_id, voters=voters, granting_voters=voters
        )
        self._stage([control_record(now_ms, change)], now_ms, is_control=True)

    def append(self, records: Sequence[object], now_ms: int) -> list[Change]:
        """Append one batch, which counts as a whole or not at all, and replay it.

        Not durable before `sync`. Raises StorageFailed; after DiskFull nothing of it is there and
        the log goes on."""
        level = self.image.metadata_version or _first_level(records)
        values = [NewRecord(now_ms, None, encode(record, level)) for record in records]
        base = self._stage(values, now_ms, is_control=False)
        changes: list[Change] = []
        for offset, record in enumerate(records, base):
            changes += self.image.apply(offset, record)
        return changes

    def _stage(self, values: list[NewRecord], now_ms: int, *, is_control: bool) -> int:
        batch = memoryview(
            bytearray(build_batch(values, leader_epoch=self.epoch, control=is_control))
        )
        mark = self._log.mark()
        base = self._log.stage(batch, read_header(batch), self.epoch, now_ms)
        try:
            self._log.commit()
        except DiskFull:  # whoever asked is told that it is not done: it must not come later
            self._log.take_back(mark)
            raise
        assert not self._log.held
        self._bytes += len(batch)
        self._last_ms = now_ms
        self.image.epoch = self.epoch
        self.image.applied_offset = base + len(values) - 1
        return base

    def sync(self) -> None:
        """Everything appended is on the disk at return. Raises StorageFailed, which is final."""
        self._log.sync_now()
        self.committed = self._log.end_offset

    def begin_sync(self) -> FlushJob | None:
        """What is to run, on any thread, so that everything appended until now is on the disk;
        `end_sync` when it has. One at a time; appending goes on meanwhile. Raises StorageFailed,
        which is final."""
        return self._log.flush_job()

    def end_sync(self, job: FlushJob, failure: Exception | None) -> None:
        """The job has run: what it covers is committed. Raises its failure, which is final."""
        if failure is not None:
            if isinstance(failure, StorageFailed):
                self._log.fail(failure)
            raise failure
        self._log.flushed(job)
        assert self.committed <= job.end_offset <= self._log.end_offset
        self.committed = job.end_offset

    def snapshot_due(self, now_ms: int) -> bool:
        """Whether enough was committed, or long enough ago, since the last snapshot."""
        limits = self._limits
        if now_ms < self._again_ms:
            return False
        old = limits.snapshot_ms > 0 and now_ms - self._snapshot_ms >= limits.snapshot_ms
        return self._bytes >= limits.snapshot_bytes or (old and self._bytes > 0)

    def begin_snapshot(self, now_ms: int) -> Unwritten:
        """A snapshot of all that was appended until now, to be written once that is committed."""
        self._again_ms = now_ms + _TRY_AGAIN_MS
        return Unwritten(
            SnapshotId(self.end_offset, self.epoch),
            self.image.frozen(),
            copy(self.quorum),
            now_ms,
            self._last_ms,
            self._bytes,
        )

    def end_snapshot(self, written: Unwritten, now_ms: int) -> list[str]:
        """It is written: drop what older ones make needless. Returns the names of the files that
        went. Raises StorageFailed."""
        assert written.snapshot.offset <= self.committed, "a snapshot holds committed records only"
        self._bytes -= written.log_bytes
        self._again_ms = 0
        self._snapshot_ms = now_ms
        return self._clean(now_ms)

    def snapshot(self, now_ms: int) -> list[str]:
        """All of it here and now, while all is committed."""
        unwritten = self.begin_snapshot(now_ms)
        unwritten.write(self._disk, self._folder)
        return self.end_snapshot(unwritten, now_ms)

    @property
    def folder(self) -> str:
        """Where log and snapshots are."""
        return self._folder

    def _clean(self, now_ms: int) -> list[str]:
        """Keep the newest snapshots and the log from the oldest of them on."""
        known = files.snapshots(self._disk, self._folder)
        gone = [one.file_name for one in known[:-KEEP_SNAPSHOTS]]
        for name in gone:
            self._disk.unlink(f"{self._folder}/{name}")
        kept = known[-KEEP_SNAPSHOTS:]
        if len(kept) == KEEP_SNAPSHOTS and kept[0].offset > self._log.log_start_offset:
            self._log.advance_log_start(kept[0].offset)
            for removal in self._log.retain(now_ms, self.committed):
                removal.run(self._disk)
        return gone

    def close(self) -> None:
        """The end of an orderly run."""
        self._log.close()


def _first_level(records: Sequence[object]) -> int:
    """The metadata.version that these first records of a cluster set."""
    for record in records:
        if getattr(record, "name", None) == "metadata.version":
            return int(getattr(record, "feature_level", 0))
    return 0


def open_log(
    disk: Disk,
    data_dir: str,
    node_id: int,
    follower: Follower,
    limits: Limits,
    now_ms: int,
    *,
    clean: bool = False,
) -> MetadataLog:
    """Open or create the log and replay it into the follower's image. clean: the last shutdown was
    orderly, so nothing can be torn.

    Raises StorageFailed, MetadataUnreadable."""
    folder = f"{data_dir}/{LOG_FOLDER}"
    config = LogConfig(
        segment_bytes=limits.segment_bytes,
        segment_ms=NEVER,
        retention_ms=-1,
        file_delete_delay_ms=0,
        max_message_bytes=limits.segment_bytes,
    )
    known = files.snapshots(disk, folder)
    durable = known[-1].offset if known else 0
    bases = files.segments(disk, folder)
    if not bases:
        bases = [durable]
        _make_folder(disk, data_dir, folder, durable)
    recovered = ""
    try:
        refuse_damage(disk, folder, bases, durable=durable, clean=clean)
    except StorageFailed as damage:
        saved = repair.plan(disk, data_dir)
        if not saved.lossless:
            raise
        old = repair.carry_out(disk, data_dir, saved, now_ms)
        recovered = f"{damage}; all of it was in a snapshot, the old files are in {old}"
        durable = saved.end + 1
        bases = [durable]
        _make_folder(disk, data_dir, folder, durable)
    log = Log.open(
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
    follower.load(log.end_offset)
    made = MetadataLog(disk, folder, node_id, log, follower, limits)
    made.recovered = recovered
    return made


def whole(disk: Disk, data_dir: str) -> bool:
    """Whether nothing in the log is damaged, a torn tail included. Raises StorageFailed when it
    cannot be read."""
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
