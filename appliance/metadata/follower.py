"""Keeps an image level with the metadata log on disk, for a process that does not write it.

Invariant: after `catch_up(committed)` the image has replayed every record below `committed` and
none at or above it, however many snapshots were taken and segments deleted meanwhile. Network and
I/O processes call it when the process table shows a new committed offset, or go on slice by slice
when it is far off (`go_on`): then image and `applied` change at once, when all of it is replayed,
so that nobody sees half of what one request did. They read the files control writes, never a byte
beyond what is committed.

A record that does not replay ends nobody but the controller, as in Apache Kafka (its fault handler
of metadata loading is fatal for a controller alone): `on_fault` takes it, and it is skipped.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from appliance.base.disk import Disk
from appliance.base.errors import PeerError, StorageFailed
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
A_SLICE: Final = 300
"""Records that are replayed in one turn."""
RECORD_NS: Final = 11_000
"""What one takes, the row of its partition included."""


def _go_on_at_once() -> None:
    """The default `breathe`: does nothing."""


class MetadataUnreadable(Exception):
    """The committed metadata cannot be read; nothing here can go on without it."""


_UNREAD: Final = (StorageFailed, MetadataUnreadable)
"""May be over when it is read again, or when a snapshot has more."""
OnFault = Callable[[int, str, Exception], None]
"""(offset, kind, exception) of a record that does not replay."""


def skip_silently(offset: int, kind: str, cause: Exception) -> None:
    """Takes a record that does not replay, for readers beside the appliance: it tells of it."""


class Ahead(NamedTuple):
    """A replay in slices up to `committed`. image: the one that is to be."""

    image: MetadataImage
    committed: int
    changes: list[Change]
    steps: Iterator[bool]


class Follower:
    """image: the replayed cluster, another object after many records or a jump to a snapshot.
    handles: (topic id, partition) → row. applied: offset after the last record that the image has
    replayed, -1 before the first look. quorum: its voters, as far as the log names them.
    faults: records that did not replay and were skipped."""

    def __init__(
        self,
        disk: Disk,
        data_dir: str,
        partitions: PartitionTable,
        on_fault: OnFault | None = None,
    ) -> None:
        """Looks at nothing yet: the folder may still have to be formatted. on_fault: takes records
        that do not replay; without it the first one raises MetadataUnreadable."""
        self._disk = disk
        self._on_fault = on_fault
        self.faults = 0
        self._data_dir = data_dir
        self._dir = f"{data_dir}/{LOG_FOLDER}"
        self._identity: Identity | None = None
        self._rows = Handles(partitions)
        self.image = MetadataImage()
        self.quorum = VoterSet()
        self.applied = -1  # nothing was looked at yet
        self._reached = -1  # `applied`, of the image that is to be
        self._records = 0  # replayed so far, of the log
        self._segment = -1  # base offset of the segment file we are in, -1: to be found
        self._position = 0
        self._ahead: Ahead | None = None
        self._owed: list[Change] = []  # replayed before a read failed, and not yet said
        self.bytes_replayed = 0  # of the log, since the snapshot that it began with

    @property
    def identity(self) -> Identity:
        """Returns the identity of this node. Raises ConfigError while the folder is not
        formatted."""
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

        Raises MetadataUnreadable when neither log nor snapshots hold what was committed undamaged,
        and StorageFailed when a file cannot be read: then it may be tried again, and what was
        replayed until then is said by the call that succeeds."""
        assert self._ahead is None, "what is replayed in slices ends in slices"
        changes, self._owed = self._owed, []
        if committed <= max(self.applied, 0):
            return changes
        try:
            if self.applied < 0:
                return self._jump(committed, breathe)
            for _ in self._replay_log(self.image, committed, changes):
                breathe()
        except (LogGone, *_UNREAD) as cause:
            self._owed = changes
            if self.applied >= 0:
                self._level_with(self.image, changes)
            if isinstance(cause, LogGone) or self._is_passed():
                return self._with_owed(self._jump(committed, breathe))
            raise
        return self._level_with(self.image, changes)

    def is_far(self, committed: int) -> bool:
        """True if `go_on` would not, or may not, replay all committed records at once."""
        return self._ahead is not None or committed - max(self.applied, 0) > A_SLICE

    def replay_slice(self, committed: int) -> list[Change] | None:
        """Replay a slice; what changed, in order. None: there is more of it, and until then image
        and `applied` are what they were. Raises MetadataUnreadable.

        More may be committed than was when the first slice began: it comes behind that. Who is
        behind by more than the log goes back begins again at a snapshot, all at once. Raises
        StorageFailed as `catch_up`."""
        ahead = self._ahead
        if ahead is None:
            if self.applied < 0 or not self.is_far(committed):
                return self.catch_up(committed)
            changes: list[Change] = []
            image = self.image.copy()
            steps = self._replay_log(image, committed, changes)
            ahead = self._ahead = Ahead(image, committed, changes, steps)
        try:
            over = next(ahead.steps, True)
        except LogGone:
            self._ahead = None
            return self._with_owed(self._jump(ahead.committed, _go_on_at_once))
        except _UNREAD:
            self._ahead = None
            if self._is_passed():
                return self._with_owed(self._jump(ahead.committed, _go_on_at_once))
            self._go_back()
            raise
        if not over:
            self._rows.take_rows(A_SLICE)
            return None
        self._ahead = None
        return self._with_owed(self._level_with(ahead.image, ahead.changes))

    def load(self, committed: int, breathe: Callable[[], None] = _go_on_at_once) -> list[Change]:
        """Begin again, from the newest snapshot if there is one; the difference is what changed.

        committed may be 0: then only what a snapshot at the very beginning says is read."""
        before = self.image
        self.image = image = MetadataImage()
        self.quorum = VoterSet()
        self._reached, self._segment, self._position, self.bytes_replayed = 0, -1, 0, 0
        newest = files.newest_snapshot(self._disk, self._dir)
        if newest is not None:
            snapshot, found = newest
            self._replay_checkpoint(image, snapshot, found, breathe)
            self.quorum = found.quorum
            self._reached = snapshot.offset
        try:
            for _ in self._replay_log(image, committed, []):
                breathe()
        except LogGone as cause:
            raise MetadataUnreadable(f"{self._dir}: {cause}; restore it from a copy") from cause
        self.applied = self._reached
        return changes_between(before, image)

    def _with_owed(self, changes: list[Change]) -> list[Change]:
        owed, self._owed = self._owed, []
        return owed + changes

    def _go_back(self) -> None:
        """Read on behind what the image has; where that is in the log is looked for again."""
        self._reached, self._segment, self._position = max(self.applied, 0), -1, 0

    def _is_passed(self) -> bool:
        """True if a snapshot has what could not be read, and more."""
        with suppress(StorageFailed):
            return any(one.offset > self._reached for one in files.snapshots(self._disk, self._dir))
        return False

    def _jump(self, committed: int, breathe: Callable[[], None]) -> list[Change]:
        before = self.image
        try:
            changes = self.load(committed, breathe)
        except _UNREAD:
            self.image = before
            self._go_back()
            raise
        return self._level_with(self.image, changes)

    def _level_with(self, image: MetadataImage, changes: list[Change]) -> list[Change]:
        self.image, self.applied = image, self._reached
        self._rows.refresh(changes)
        return changes

    def _replay_log(
        self, image: MetadataImage, committed: int, changes: list[Change]
    ) -> Iterator[bool]:
        """Replay into `image`; False behind each slice."""
        while self._reached < committed:
            before = self._reached
            if self._segment >= 0:
                yield from self._replay_segment(image, committed, changes)
            if self._reached == before:
                self._next_segment()

    def _next_segment(self) -> None:
        """Go to the segment that holds the next offset; where in it is found by reading on."""
        bases = [base for base in files.segments(self._disk, self._dir) if base <= self._reached]
        if not bases or max(bases) == self._segment:
            raise LogGone(f"no segment holds offset {self._reached}")
        self._segment = max(bases)
        self._position = 0

    def _replay_segment(
        self, image: MetadataImage, committed: int, changes: list[Change]
    ) -> Iterator[bool]:
        """Replay what this segment has below `committed`."""
        path = f"{self._dir}/{self._segment:020d}.log"
        while self._reached < committed:
            data = files.read_at(self._disk, path, self._position, READ_BYTES)
            if len(data) >= HEADER_SIZE:
                whole = read_header(data).size
                if whole > len(data):
                    data = files.read_at(self._disk, path, self._position, whole)
            before = self._position
            yield from self._replay_batches(image, memoryview(data), committed, changes)
            if self._position == before:
                return

    def _replay_batches(
        self, image: MetadataImage, data: memoryview, committed: int, changes: list[Change]
    ) -> Iterator[bool]:
        """Replay the whole batches in `data`."""
        at = 0
        while len(data) - at >= HEADER_SIZE:
            header = read_header(data, at)
            end = header.base_offset + header.last_offset_delta + 1
            if not HEADER_SIZE <= header.size <= len(data) - at or end > committed:
                return
            batch = data[at : at + header.size]
            at += header.size
            if end > self._reached:  # or a snapshot had it
                if not checksum_holds(batch):
                    where = f"{self._dir}, offset {header.base_offset}"
                    raise MetadataUnreadable(f"{where}: the batch has a wrong checksum")
                if header.is_control:
                    self._replay_control(batch)
                else:
                    self._records += 1  # a batch of one record takes twice as long as the record
                    yield from self._replay_batch(image, batch, changes)
                image.epoch = header.leader_epoch
                image.applied_offset = end - 1
                self._reached = end
                self.bytes_replayed += header.size
            self._position += header.size

    def _replay_control(self, batch: memoryview) -> None:
        for record in iter_records(batch):
            try:
                self.quorum.apply(control.decode(record.key, record.value))
            except Exception as cause:
                self._skip(record.offset, "control record", cause)

    def _replay_batch(
        self, image: MetadataImage, batch: memoryview, changes: list[Change]
    ) -> Iterator[bool]:
        records = iter_records(batch)
        while True:
            try:
                record = next(records, None)
            except Exception as cause:
                self._skip(read_header(batch).base_offset, "batch", cause)
                return
            if record is None:
                return
            if self._records >= A_SLICE:
                self._records = 0
                yield False
            self._records += 1
            changes += self._apply(image, record.offset, record.value or b"")

    def _replay_checkpoint(
        self,
        image: MetadataImage,
        snapshot: SnapshotId,
        found: checkpoint.Checkpoint,
        breathe: Callable[[], None],
    ) -> None:
        for number, value in enumerate(found.values):
            if not number % BREATH:
                breathe()
            self._apply(image, snapshot.offset - 1, value)
        image.applied_offset = snapshot.offset - 1
        image.epoch = snapshot.epoch

    def _apply(self, image: MetadataImage, offset: int, value: bytes) -> list[Change]:
        """Returns what one record has changed: nothing if it does not replay and is skipped."""
        try:
            record = decode_record(value)
            if self._on_fault is None:
                return image.apply(offset, record)
            return image.apply(
                offset, record, lambda one, cause: self._skip(offset, type(one).__name__, cause)
            )
        except Exception as cause:
            self._skip(offset, "record", cause)
            return []

    def _skip(self, offset: int, kind: str, cause: Exception) -> None:
        """Counts and tells a record that does not replay. Raises MetadataUnreadable where nobody
        is told."""
        if self._on_fault is None:
            why = f"{self._dir}, offset {offset}: {str(cause) or type(cause).__name__}"
            raise MetadataUnreadable(why) from cause
        self.faults += 1
        self._on_fault(offset, kind, cause)


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
