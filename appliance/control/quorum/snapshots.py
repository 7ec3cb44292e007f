"""Snapshots of the committed image: when one is due, writing it, and what it makes needless.

Invariant: a snapshot holds committed records only, and the log goes back to the oldest snapshot
that is kept. Called by `metadata_quorum.py`; the file is written on a thread.
"""

from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, write_file
from appliance.control.quorum.metadata_log import MetadataLog
from appliance.metadata import checkpoint, files
from appliance.metadata.checkpoint import SnapshotId, VoterSet
from appliance.metadata.image import MetadataImage

KEEP_SNAPSHOTS: Final = 2
_TRY_AGAIN_MS: Final = 60_000


@dataclass(slots=True, frozen=True)
class SnapshotLimits:
    """When a snapshot is due, and how large segments get; bytes, and ms (0: never)."""

    snapshot_bytes: int
    snapshot_ms: int
    segment_bytes: int


@dataclass(slots=True, frozen=True)
class Unwritten:
    """A snapshot that is to be written: of an image that nobody changes, with the bytes of the log
    that it spares."""

    snapshot: SnapshotId
    image: MetadataImage
    voters: VoterSet
    now_ms: int
    last_ms: int
    log_bytes: int

    def write_file(self, disk: Disk, folder: str) -> None:
        """Write the file, durably; on any thread. Raises StorageFailed."""
        pieces = checkpoint.write_checkpoint(
            self.image,
            self.snapshot,
            self.voters,
            now_ms=self.now_ms,
            last_log_timestamp=self.last_ms,
        )
        write_file(disk, f"{folder}/{self.snapshot.file_name}", b"".join(pieces))


class SnapshotSchedule:
    """bytes_committed: in the log since the last snapshot."""

    __slots__ = ("_again_ms", "_disk", "_limits", "_log", "_taken_ms", "bytes_committed")

    def __init__(
        self, disk: Disk, log: MetadataLog, limits: SnapshotLimits, bytes_committed: int
    ) -> None:
        self._disk = disk
        self._log = log
        self._limits = limits
        self._taken_ms = 0
        self._again_ms = 0  # not before, after one that failed
        self.bytes_committed = bytes_committed

    def began(self, now_ms: int) -> None:
        """The interval between snapshots runs from here."""
        self._taken_ms = now_ms

    def due(self, now_ms: int) -> bool:
        """True if enough bytes were committed, or enough time has passed, since the last
        snapshot.
        """
        limits, size = self._limits, self.bytes_committed
        if now_ms < self._again_ms:
            return False
        old = limits.snapshot_ms > 0 and now_ms - self._taken_ms >= limits.snapshot_ms
        return size >= limits.snapshot_bytes or (old and size > 0)

    def begin_snapshot(self, image: MetadataImage, voters: VoterSet, now_ms: int) -> Unwritten:
        """A snapshot of the committed image as it is now."""
        assert image.applied_offset < self._log.durable, "a snapshot holds durable records only"
        self._again_ms = now_ms + _TRY_AGAIN_MS
        return Unwritten(
            SnapshotId(image.applied_offset + 1, image.epoch),
            image.copy(),
            VoterSet(voters.kraft_version, voters.record),
            now_ms,
            self._log.last_ms,
            self.bytes_committed,
        )

    def end_snapshot(self, written: Unwritten, now_ms: int) -> list[str]:
        """It is written: drop what older ones make needless. Returns the names of the files that
        went. Raises StorageFailed."""
        self.bytes_committed -= written.log_bytes
        assert self.bytes_committed >= 0
        self._again_ms = 0
        self._taken_ms = now_ms
        return self._clean(now_ms)

    def _clean(self, now_ms: int) -> list[str]:
        """Keep the newest snapshots and the log from the oldest of them on."""
        folder = self._log.folder
        known = files.snapshots(self._disk, folder)
        gone = [one.file_name for one in known[:-KEEP_SNAPSHOTS]]
        for name in gone:
            self._disk.unlink(f"{folder}/{name}")
        kept = known[-KEEP_SNAPSHOTS:]
        if len(kept) == KEEP_SNAPSHOTS:
            self._log.advance_start(kept[0].offset, now_ms)
        return gone
