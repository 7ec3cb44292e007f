"""Keeps an image level with the metadata log on disk, for a process that does not write it.

Invariant: after `catch_up(committed)` the image has replayed every record below `committed` and
none at or above it, however many snapshots were taken and segments deleted meanwhile. Network and
I/O processes call it when the process table shows a new committed offset; they read the files
control writes, never a byte beyond what is committed.
"""

from collections.abc import Callable
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import PeerError
from appliance.base.ids import METADATA_TOPIC
from appliance.metadata import checkpoint, files
from appliance.metadata.changes import Change
from appliance.metadata.checkpoint import SnapshotId, VoterSet
from appliance.metadata.diff import changes_between
from appliance.metadata.files import LogGone
from appliance.metadata.handles import Handles
from appliance.metadata.identity import Identity, read_identity
from appliance.metadata.image import MetadataImage
from appliance.ring.partition_table import PartitionTable
from appliance.wire import control_records as control
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import HEADER_SIZE, checksum_holds, iter_records, read_header
from appliance.wire.fields import UNREADABLE, read_uvarint

READ_BYTES: Final = 1 << 20
LOG_FOLDER: Final = f"{METADATA_TOPIC}-0"


BREATH: Final = 1000
"""Records of a snapshot between two breaths: some 20 ms."""


def _go_on_at_once() -> None:
    """Nobody waits to hear of us."""


class MetadataUnreadable(Exception):
    """The committed metadata cannot be read; nothing here can go on without it."""


class Follower:
    """image: the replayed cluster, another object after a jump to a snapshot. handles: (topic id,
    partition) → row. applied: offset after the last record replayed, -1 before the first look.
    quorum: its voters, as far as the log names them."""

    def __init__(self, disk: Disk, data_dir: str, partitions: PartitionTable) -> None:
        """Looks at nothing yet: the folder may still have to be formatted."""
        self._disk = disk
        self._data_dir = data_dir
        self._dir = f"{data_dir}/{LOG_FOLDER}"
        self._identity: Identity | None = None
        self._rows = Handles(partitions)
        self.image = MetadataImage()
        self.quorum = VoterSet()
        self.applied = -1  # nothing was looked at yet
        self._segment = -1  # base offset of the segment file we are in, -1: to be found
        self._position = 0
        self._breathe = _go_on_at_once
        self.bytes_replayed = 0  # of the log, since the snapshot that it began with

    @property
    def identity(self) -> Identity:
        """Who this node is. Raises ConfigError while the folder is not a formatted one."""
        if self._identity is None:
            self._identity = read_identity(self._disk, self._data_dir)
        return self._identity

    @property
    def cluster_id(self) -> str:
        """Text of the cluster's id."""
        return self.identity.cluster_id

    @property
    def handles(self) -> dict[tuple[bytes, int], int]:
        """(topic id, partition) → row of the partition table; one dict for ever."""
        return self._rows.rows

    def catch_up(
        self, committed: int, breathe: Callable[[], None] = _go_on_at_once
    ) -> list[Change]:
        """Replay up to `committed` (an exclusive end) and say what changed, in order. breathe:
        called now and then meanwhile, for who has to be heard of however much there is.

        Raises MetadataUnreadable when neither log nor snapshots hold what was committed."""
        if committed <= max(self.applied, 0):
            return []
        self._breathe = breathe
        try:
            changes = self.load(committed) if self.applied < 0 else self._replay_log(committed)
        except LogGone:
            changes = self.load(committed)
        self._rows.refresh(changes)
        self._breathe = _go_on_at_once
        return changes

    def load(self, committed: int) -> list[Change]:
        """Begin again, from the newest snapshot if there is one; the difference is what changed.

        committed may be 0: then only what a snapshot at the very beginning says is read."""
        before = self.image
        self.image = MetadataImage()
        self.applied, self._segment, self._position, self.bytes_replayed = 0, -1, 0, 0
        newest = files.newest_snapshot(self._disk, self._dir)
        if newest is not None:
            snapshot, found = newest
            _replay_checkpoint(self.image, snapshot, found, self._breathe)
            self.quorum = found.quorum
            self.applied = snapshot.offset
        try:
            self._replay_log(committed)
        except LogGone as cause:
            raise MetadataUnreadable(f"{self._dir}: {cause}; restore it from a copy") from cause
        return changes_between(before, self.image)

    def _replay_log(self, committed: int) -> list[Change]:
        changes: list[Change] = []
        while self.applied < committed:
            before = self.applied
            if self._segment >= 0:
                self._replay_segment(committed, changes)
            if self.applied == before:
                self._next_segment()
        return changes

    def _next_segment(self) -> None:
        """Go to the segment that holds the next offset; where in it is found by reading on."""
        bases = [base for base in files.segments(self._disk, self._dir) if base <= self.applied]
        if not bases or max(bases) == self._segment:
            raise LogGone(f"no segment holds offset {self.applied}")
        self._segment = max(bases)
        self._position = 0

    def _replay_segment(self, committed: int, changes: list[Change]) -> None:
        """Replay what this segment has below `committed`."""
        path = f"{self._dir}/{self._segment:020d}.log"
        while self.applied < committed:
            data = files.read_at(self._disk, path, self._position, READ_BYTES)
            if len(data) >= HEADER_SIZE:
                whole = read_header(data).size
                if whole > len(data):
                    data = files.read_at(self._disk, path, self._position, whole)
            taken = self._replay_batches(memoryview(data), committed, changes)
            if not taken:
                return
            self._position += taken

    def _replay_batches(self, data: memoryview, committed: int, changes: list[Change]) -> int:
        """Replay the whole batches in `data`; how many bytes they are."""
        at = 0
        while len(data) - at >= HEADER_SIZE:
            header = read_header(data, at)
            end = header.base_offset + header.last_offset_delta + 1
            if not HEADER_SIZE <= header.size <= len(data) - at or end > committed:
                break
            batch = data[at : at + header.size]
            at += header.size
            if end <= self.applied:
                continue  # a snapshot had it
            if not checksum_holds(batch):
                where = f"{self._dir}, offset {header.base_offset}"
                raise MetadataUnreadable(f"{where}: the batch has a wrong checksum")
            if header.is_control:
                for record in iter_records(batch):
                    self.quorum.apply(control.decode(record.key, record.value))
            else:
                changes += _replay_batch(self.image, batch)
            self.image.epoch = header.leader_epoch
            self.image.applied_offset = end - 1
            self.applied = end
            self.bytes_replayed += header.size
            self._breathe()
        return at


def _replay_batch(image: MetadataImage, batch: memoryview) -> list[Change]:
    changes: list[Change] = []
    for record in iter_records(batch):
        changes += image.apply(record.offset, decode_record(record.value or b""))
    return changes


def decode_record(value: bytes) -> object:
    """The record, or its bytes when nobody here knows its kind: the image counts those."""
    try:
        return kraft.decode(value)
    except PeerError as cause:
        try:
            kind, _ = read_uvarint(value, read_uvarint(value, 0)[1])
        except UNREADABLE:
            kind = -1
        if kind < 0 or kind in kraft.RECORD_TYPES:
            raise MetadataUnreadable(cause.message) from cause
        return value


def _replay_checkpoint(
    image: MetadataImage,
    snapshot: SnapshotId,
    found: checkpoint.Checkpoint,
    breathe: Callable[[], None],
) -> None:
    for number, value in enumerate(found.values):
        if not number % BREATH:
            breathe()
        image.apply(snapshot.offset - 1, decode_record(value))
    image.applied_offset = snapshot.offset - 1
    image.epoch = snapshot.epoch
