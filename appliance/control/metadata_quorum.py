"""The metadata of the cluster as its quorum of one keeps it: the log, who leads it in which epoch,
the committed image and the speculative one.

    elected → activate → append* → begin_sync … end_sync → what is committed
                   resign: what is not committed was never decided, though it stays in the log

Invariant: nothing is decided but by an active leader, over everything that stands in the log; the
records that a leader left behind are the first thing that the next one decides over, and are
committed with its own. Only a later leader's log may cut them off. Called by `main.py` and
`leading.py`.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from appliance.base.disk import Disk
from appliance.base.errors import DiskFull
from appliance.control import quorum_state
from appliance.control.images import Images
from appliance.control.leadership import Leadership, NotController
from appliance.control.metadata_log import MetadataLog, batch_of
from appliance.control.snapshots import Limits, Snapshots, Unwritten
from appliance.logstore.flush import FlushJob
from appliance.metadata.changes import Change
from appliance.metadata.checkpoint import VoterSet, control_record
from appliance.metadata.follower import Follower, decode_record
from appliance.metadata.image import METADATA_VERSION, MetadataImage
from appliance.metadata.record_versions import encode
from appliance.quorum.messages import Known
from appliance.wire import control_records as control
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord, iter_records


class Held(NamedTuple):
    """A batch that was decided and may not be in the log yet. base: the offset that it gets.
    behind: the note that must be on the disk before, 0: none but those of the batches before."""

    base: int
    batch: memoryview
    behind: int


class MetadataQuorum:
    """log, leadership, images, snapshots: the parts. voters: as the log names them."""

    __slots__ = ("_disk", "_held", "_node_id", "images", "leadership", "log", "snapshots", "voters")

    def __init__(
        self, disk: Disk, node_id: int, log: MetadataLog, follower: Follower, limits: Limits
    ) -> None:
        """follower: which has replayed all of the log."""
        image = follower.image
        assert follower.applied == log.end_offset == log.durable
        self._disk = disk
        self._node_id = node_id
        self._held: deque[Held] = deque()
        self.log = log
        self.leadership = Leadership(node_id, max(image.epoch, 0), log.durable)
        self.images = Images(image)
        self.snapshots = Snapshots(disk, log, limits, follower.bytes_replayed)
        self.voters: VoterSet = follower.quorum

    @property
    def active(self) -> bool:
        """Whether requests are decided here: this node leads, and its log says so."""
        return self.images.speculative is not None

    @property
    def image(self) -> MetadataImage:
        """What requests are answered from: the speculative image, while there is one."""
        return self.images.speculative or self.images.committed

    @property
    def seen(self) -> int:
        """Exclusive end of what `image` has replayed: what was answered from it may be said when
        this is committed."""
        end = self.images.speculative.applied_offset + 1 if self.images.speculative else -1
        assert end < 0 or end >= self.log.end_offset
        return end if end >= 0 else self.committed

    @property
    def committed(self) -> int:
        """Exclusive end of what is committed."""
        return self.leadership.high_watermark

    # Leading --------------------------------------------------------------------------------------

    def elected(self, now_ms: int) -> None:
        """Lead a new epoch, which quorum-state has first (KIP-595). Raises StorageFailed."""
        before = max(quorum_state.read(self._disk, self.log.folder).epoch, self.leadership.epoch)
        with suppress(DiskFull):  # the only voter's log says it before anybody else can know
            quorum_state.write(
                self._disk,
                self.log.folder,
                Known(before + 1, leader=self._node_id),
                dynamic=self.voters.kraft_version > 0,
                voters=(self._node_id,),
            )
        self.leadership.elected(before + 1, self.log.end_offset)
        self.snapshots.began(now_ms)

    def activate(self, now_ms: int) -> None:
        """Begin to decide: over what is committed and what an earlier leader left, with the first
        record of the epoch behind it. Raises StorageFailed; after DiskFull it can be tried
        again."""
        leadership, images = self.leadership, self.images
        assert leadership.leads and not self.active
        self._over_the_log()
        voters = tuple(
            control.Voter(voter_id=voter) for voter, _ in self.voters.voters(self._node_id)
        )
        change = control.LeaderChangeMessage(
            version=0, leader_id=self._node_id, voters=voters, granting_voters=voters
        )
        record = control_record(now_ms, change)
        try:
            batch = batch_of([record], leadership.epoch, is_control=True)
            base = self.log.append(batch, leadership.epoch, now_ms)
        except DiskFull:
            images.drop()
            raise
        images.decide(base, base + 1, (), epoch=leadership.epoch, size=len(batch))
        if self.image.pending is not None:
            reason = "Aborting a metadata transaction of a leader before."
            self.append([kraft.AbortTransactionRecord(reason=reason)], now_ms)

    def _over_the_log(self) -> None:
        """Begin to decide anew, over everything that stands in the log."""
        images = self.images
        images.begin()
        for header, batch in self.log.read(self.committed, self.log.end_offset):
            found = [] if header.is_control else iter_records(batch)
            images.decide(
                header.base_offset,
                header.last_offset + 1,
                [decode_record(record.value or b"") for record in found],
                epoch=header.leader_epoch,
                size=header.size,
            )

    def resign(self) -> None:
        """This node does not lead any more: what was decided and is not committed is forgotten."""
        self.leadership.resigned()
        self.images.drop()
        self._held.clear()

    def truncate(self, offset: int, now_ms: int) -> None:
        """The log of who leads now has nothing, or something else, from `offset` on: what this node
        left there as a leader was never committed. No sync is under way. Raises StorageFailed."""
        assert not self.leadership.leads, "a leader's log is what is agreed"
        assert offset >= self.committed, "what is committed stays"
        self.log.truncate(offset, now_ms)

    # Deciding -------------------------------------------------------------------------------------

    def append(self, records: Sequence[object], now_ms: int, *, behind: int = 0) -> None:
        """Append one batch, which counts as a whole or not at all, and let it come true in the
        speculative image. behind: a note that must be on the disk first: until `noted` says so the
        batch is held, and so are those that come after it.

        Committed when a sync has ended. Raises NotController, StorageFailed; after DiskFull nothing
        of it is there and the log goes on."""
        image, epoch = self.images.speculative, self.leadership.epoch
        if image is None:
            raise NotController
        level = image.metadata_version or _first_level(records)
        values = [NewRecord(now_ms, None, encode(record, level)) for record in records]
        batch = batch_of(values, epoch)
        base = image.applied_offset + 1
        if behind or self._held:
            self._held.append(Held(base, batch, behind))
        else:
            given = self.log.append(batch, epoch, now_ms)
            assert given == base, (given, base)
        self.images.decide(base, base + len(records), records, epoch=epoch, size=len(batch))

    def noted(self, note: int, now_ms: int) -> None:
        """Notes up to this one are on the disk: append what was held for them. Raises
        StorageFailed; after DiskFull what is held is as if it had never been decided."""
        held = self._held
        assert self.active or not held, "what is held is forgotten with the leadership"
        try:
            while held and held[0].behind <= note:
                base = self.log.append(held[0].batch, self.leadership.epoch, now_ms)
                one = held.popleft()
                assert base == one.base, (base, one.base)
        except DiskFull:
            held.clear()
            self.images.drop()
            self._over_the_log()
            raise

    # Committing -----------------------------------------------------------------------------------

    def sync(self) -> list[Change]:
        """Everything appended is durable at return: what is committed with it. Raises
        StorageFailed, which is final."""
        self.log.sync()
        return self._commit()

    def end_sync(self, job: FlushJob, failure: Exception | None) -> list[Change]:
        """A job of `log.begin_sync` has run: what is committed with it. Raises its failure, which
        is final."""
        self.log.end_sync(job, failure)
        return self._commit()

    def _commit(self) -> list[Change]:
        changes, size = self.images.commit(self.leadership.durable(self.log.durable))
        self.snapshots.bytes_committed += size
        assert self.images.committed.applied_offset < self.committed
        return changes

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot_due(self, now_ms: int) -> bool:
        """Whether a snapshot should begin. There is none in the middle of a metadata transaction
        (KIP-868)."""
        return self.images.committed.pending is None and self.snapshots.due(now_ms)

    def begin_snapshot(self, now_ms: int) -> Unwritten:
        """A snapshot of what is committed."""
        return self.snapshots.begin(self.images.committed, self.voters, now_ms)

    def snapshot(self, now_ms: int) -> list[str]:
        """All of it here and now. Raises StorageFailed."""
        unwritten = self.begin_snapshot(now_ms)
        unwritten.write(self._disk, self.log.folder)
        return self.snapshots.end(unwritten, now_ms)


def _first_level(records: Sequence[object]) -> int:
    """The metadata.version that these first records of a cluster set."""
    for record in records:
        if isinstance(record, kraft.FeatureLevelRecord) and record.name == METADATA_VERSION:
            return record.feature_level
    return 0


def open_quorum(
    disk: Disk, node_id: int, log: MetadataLog, follower: Follower, limits: Limits
) -> MetadataQuorum:
    """Over a log that was just opened, all of which is replayed into the follower's image. Raises
    MetadataUnreadable, StorageFailed."""
    follower.load(log.end_offset)
    return MetadataQuorum(disk, node_id, log, follower, limits)
