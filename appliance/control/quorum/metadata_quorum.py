"""The metadata of the cluster as one replica of its quorum keeps it: the log, the replica that says
who leads it in which epoch, the committed image and the speculative one.

    elected → activate → append* → begin_sync … end_sync → advance: what is committed
                   resign: what is not committed was never decided, though it stays in the log
    follow* → begin_sync … end_sync → advance

Invariant: nothing is decided but by an active leader, over everything that stands in the log; the
records that a leader left behind are the first thing that the next one decides over, and are
committed with its own. Only a later leader's log may cut them off. What is committed here is agreed
and on this node's disk. Called by `shell.py`, `new_leader.py` and `driver.py`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from appliance.base.disk import Disk
from appliance.base.errors import CORRUPT_MESSAGE, DiskFull, PeerError
from appliance.control.deletion.deletion_barrier import DeletionBarrier, only_removals
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.images import Images
from appliance.control.quorum.leadership import Leadership, NotController
from appliance.control.quorum.metadata_log import MetadataLog, batch_of, control_messages, decoded
from appliance.control.quorum.snapshots import SnapshotLimits, SnapshotSchedule, Unwritten
from appliance.control.quorum.voter_records import (
    electorate_after,
    for_snapshot,
    of_snapshot,
    records,
)
from appliance.logstore.flush import FlushJob
from appliance.metadata.changes import Change
from appliance.metadata.checkpoint import control_record
from appliance.metadata.follower import Follower, MetadataUnreadable
from appliance.metadata.image import METADATA_VERSION, MetadataImage
from appliance.metadata.record_versions import encode
from appliance.quorum.epochs import LAST
from appliance.quorum.messages import NOBODY, QuorumState
from appliance.quorum.replica import Replica
from appliance.quorum.times import Times
from appliance.quorum.voters import ANY, STATIC, Electorate, History, Voter, place_of
from appliance.wire import control_records as control
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import HEADER_SIZE, NewRecord, checksum_holds, read_header

_AT_ONCE: Final = 1000
"""Records that `advance` replays on a follower before it lets others go on: some 10 ms."""
_NO_EPOCH_LEFT: Final = (
    "{}: the log ends in epoch {}, the last one: no leader can be elected. If this node is the"
    " only voter, penstock metadata repair gives the log a new epoch; else restore one voter"
    " from an earlier backup (penstock restore)"
)


class Held(NamedTuple):
    """A batch that was decided and may not be in the log yet. base: the offset that it gets.
    behind: the note that must be on the disk before, 0: none but those of the batches before."""

    base: int
    batch: memoryview
    behind: int


class VotingSetup(NamedTuple):
    """How a node takes part in its quorum. voters: of the settings, none: this node alone, or those
    that the `seeds` (`Replica`) tell of; what the log says counts more. published: where the
    metadata ends that other processes of this node already act upon. chance: a number from 0 to
    what it is given. now_ms: of a clock that never goes back, which is that of the replica.
    directory: id of this node's folder."""

    voters: tuple[Voter, ...] = ()
    published: int = 0
    chance: Callable[[int], int] = lambda most: most // 2
    now_ms: int = 0
    times: Times = Times()
    directory: bytes = ANY
    seeds: tuple[int, ...] = ()


ALONE: Final = VotingSetup()


class MetadataQuorum:
    """log, replica, images, snapshots: the parts. leadership: what the replica knows. electing: who
    votes, as the log says it. deletions: what is noted before it is committed here. mended:
    what of quorum-state was replaced at the start, in words. changing: the log may have what the
    image has not, because an append has not come to its end."""

    __slots__ = ("_disk", "_held", "_node_id", "changing", "deletions", "electing", "images",
                 "leadership", "log", "mended", "replica", "snapshots")  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        node_id: int,
        log: MetadataLog,
        follower: Follower,
        limits: SnapshotLimits,
        replica: Replica,
        electing: History,
    ) -> None:
        """follower: which has replayed what is known to be agreed."""
        assert follower.applied == replica.high_watermark <= log.durable == log.end_offset
        self._disk = disk
        self._node_id = node_id
        self._held: deque[Held] = deque()
        self.changing = False
        self.log = log
        self.replica = replica
        self.leadership = Leadership(replica)
        self.images = Images(follower.image)
        self.snapshots = SnapshotSchedule(disk, log, limits, follower.bytes_replayed)
        self.electing = electing
        self.deletions = DeletionBarrier()
        self.mended = ""

    @property
    def active(self) -> bool:
        """True if requests are decided here: this node leads, and its log has its epoch."""
        return self.images.speculative is not None

    @property
    def image(self) -> MetadataImage:
        """The image to answer from: the speculative one, while it exists."""
        return self.images.speculative or self.images.committed

    @property
    def replayed_end(self) -> int:
        """Exclusive end of what `image` has replayed: what was answered from it may be said when
        this is committed."""
        end = self.images.speculative.applied_offset + 1 if self.images.speculative else -1
        assert end < 0 or end >= self.log.end_offset
        return end if end >= 0 else self.committed

    @property
    def committed(self) -> int:
        """Exclusive end of what is committed: agreed, on the disk here, and in the image."""
        return self.images.committed.applied_offset + 1

    @property
    def behind(self) -> bool:
        """True if `advance` has something to do."""
        return self._agreed > self.committed

    @property
    def _agreed(self) -> int:
        """Exclusive end of what may be committed here now."""
        return min(self.replica.high_watermark, self.log.durable, self.deletions.limit)

    @property
    def alone(self) -> bool:
        """True if this node is the only voter."""
        return self.replica.alone

    @property
    def kraft_version(self) -> int:
        """The finalized one, at the end of the log."""
        return self.electing.latest.kraft_version

    def reached(self, listener: str) -> dict[int, tuple[str, int]]:
        """(host, port) of this controller listener of each voter that has it, by its id."""
        voters = self.electing.latest.voters
        told = {one.node_id: place_of(one.endpoints, listener) for one in voters}
        return {node: place for node, place in told.items() if place is not None}

    # Electing -------------------------------------------------------------------------------------

    def remember(self, known: QuorumState) -> None:
        """quorum-state has it at return. Raises StorageFailed; an only voter's log says it before
        anybody else can know, so it can do without where there is no room."""
        try:
            quorum_state.write_state(
                self._disk,
                self.log.folder,
                known,
                dynamic=self.electing.oldest.kraft_version > STATIC or not self.replica.voters,
                voters=self.replica.voters,
            )
        except DiskFull:
            if not self.alone:
                raise

    def elected(self, now_ms: int) -> None:
        """The only voter elects itself: it leads a new epoch, which quorum-state has first
        (KIP-595). Raises StorageFailed."""
        replica = self.replica
        assert self.alone and not self.leadership.leads, "who leads is not elected"
        replica.tick(replica.deadline)
        known, messages = replica.take_effects()
        assert replica.leads and known is not None and not messages
        self.remember(known)
        self.snapshots.began(now_ms)

    # Leading --------------------------------------------------------------------------------------

    def activate(self, now_ms: int) -> None:
        """Begin to decide: over what is committed and what an earlier leader left, with the first
        record of the epoch behind it. Raises StorageFailed; after DiskFull it can be tried
        again."""
        replica, images = self.replica, self.images
        assert replica.leads and not self.active
        self._over_the_log()
        first: list[control.ControlRecord] = [
            control.LeaderChangeMessage(
                version=0,  # Kafka's own readers know no other one
                leader_id=self._node_id,
                voters=tuple(control.VoterRecord(voter_id=one) for one in replica.voters),
                granting_voters=tuple(control.VoterRecord(voter_id=one) for one in replica.granted),
            )
        ]
        if self.kraft_version > STATIC and self.log.end_offset == 0:
            first += records(self.electing.latest)  # as formatting left them beside the log
        try:
            self.append_control(first, now_ms)
        except DiskFull:
            images.drop()
            raise
        if self.image.pending is not None:
            reason = "Aborting a metadata transaction of a leader before."
            self.append([kraft.AbortTransactionRecord(reason=reason)], now_ms)

    @property
    def may_change(self) -> bool:
        """True if `say` may name other voters: no other change of them is under way."""
        return self.active and self.replica.may_change and not self._held

    def elect(self, electorate: Electorate, now_ms: int) -> None:
        """These vote from now on. Raises as `say`."""
        assert self.may_change, "one change at a time"
        version, named = records(electorate)
        upgrade = electorate.kraft_version != self.kraft_version
        self.append_control([version, named] if upgrade else [named], now_ms)

    def elected_by(self, decided: list[object], now_ms: int) -> list[object]:
        """Those of a decision's records that do not say who votes; those that do hold from now on.
        Raises as `say`."""
        for one in decided:
            if isinstance(one, Electorate):
                self.elect(one, now_ms)
        return [one for one in decided if not isinstance(one, Electorate)]

    def _write(self, batch: memoryview, now_ms: int) -> int:
        """Append to the log what the image is to have next. Raises as `MetadataLog.append`."""
        self.changing = True
        try:
            return self.log.append(batch, self.leadership.epoch, now_ms)
        except DiskFull:
            self.changing = False
            raise

    def append_control(self, said: Sequence[control.ControlRecord], now_ms: int) -> None:
        """Append control records; what they say of voters holds at once. Raises StorageFailed;
        after DiskFull nothing of it is there."""
        assert self.active and not self._held, "control records come in their order"
        epoch = self.replica.epoch
        values = [control_record(now_ms, one) for one in said]
        batch = batch_of(values, epoch, is_control=True)
        base = self._write(batch, now_ms)
        self.images.decide(base, base + len(said), (), epoch=epoch, size=len(batch))
        self._heed(said)
        self.changing = False

    def _heed(self, said: Sequence[control.ControlRecord]) -> None:
        """The log ends with these."""
        now = electorate_after(self.electing.latest, said)
        if now == self.electing.latest:
            return
        self.electing.add_electorate(self.log.end_offset, now)
        self._elects()

    def _elects(self) -> None:
        said = self.electing
        self.replica.elects(said.latest.keys, said.latest_end, said.oldest.keys)

    def _over_the_log(self) -> None:
        """Begin to decide anew, over everything that stands in the log."""
        images = self.images
        images.begin_image()
        for header, batch in self.log.read(self.committed, self.log.end_offset):
            records = [] if header.is_control else decoded(batch)
            assert images.speculative is not None
            self.deletions.check_batch(header, records, images.speculative)
            images.decide(
                header.base_offset,
                header.last_offset + 1,
                records,
                epoch=header.leader_epoch,
                size=header.size,
            )

    def resign(self) -> None:
        """This node does not lead any more: what was decided and is not committed is forgotten."""
        self.images.drop()
        self._held.clear()
        self.deletions.forget_from(self.committed)

    def truncate(self, offset: int, now_ms: int) -> None:
        """The log of who leads now has nothing, or something else, from `offset` on: what this node
        left there as a leader was never committed. No sync is under way. Raises StorageFailed."""
        assert not self.leadership.leads, "a leader's log is what is agreed"
        assert offset >= self.committed, "what is committed stays"
        self.log.truncate(offset, now_ms)
        self.deletions.forget_from(offset)
        if self.electing.truncate(offset):
            self._elects()

    def follow(self, records: bytes, epoch: int, now_ms: int) -> None:
        """The batches that the leader of `epoch` has behind the end of this log, appended as they
        came; one that is cut off is left for the next time. Raises PeerError when they are none,
        StorageFailed; what stands before is there. Durable after a sync."""
        view, at = memoryview(bytearray(records)), 0
        while len(view) - at >= HEADER_SIZE:
            header = read_header(view, at)
            batch = view[at : at + header.size]
            if header.size >= HEADER_SIZE and len(batch) < header.size:
                break
            fits = header.base_offset == self.log.end_offset
            if not (
                header.size >= HEADER_SIZE
                and fits
                and self.log.last_epoch <= header.leader_epoch <= epoch
                and header.last_offset >= header.base_offset
                and checksum_holds(batch)
            ):
                raise PeerError(CORRUPT_MESSAGE, f"the batch at {header.base_offset} is broken")
            said = control_messages(batch) if header.is_control else ()
            self.log.append(batch, header.leader_epoch, now_ms)
            self.changing = True
            self._heed(said)
            self.changing = False
            at += header.size

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
            self.changing = True
            self._held.append(Held(base, batch, behind))
        else:
            given = self._write(batch, now_ms)
            assert given == base, (given, base)
        self.images.decide(base, base + len(records), records, epoch=epoch, size=len(batch))
        self.changing = False

    def noted(self, note: int, now_ms: int) -> None:
        """Notes up to this one are on the disk: append what was held for them. Raises
        StorageFailed; after DiskFull what is held is as if it had never been decided."""
        self.deletions.noted(note)
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
        self.replica.durable(self.log.durable)
        return self.advance()

    def end_sync(self, job: FlushJob, failure: Exception | None) -> list[Change]:
        """A job of `log.begin_sync` has run: what is committed with it. Raises its failure, which
        is final."""
        self.log.end_sync(job, failure)
        self.replica.durable(self.log.durable)
        return self.advance()

    def advance(self) -> list[Change]:
        """Commit what is agreed and on the disk, or some of it (`behind`): what changed."""
        end = self._agreed
        changes, size = self.images.commit(end) if self.active else self._replay(end)
        self.snapshots.bytes_committed += size
        before = self.electing.oldest.kraft_version
        self.electing.agreed(self.committed)
        if self.electing.oldest.kraft_version != before:
            self.remember(self.replica.known)  # the file names voters no more
        return changes

    def _replay(self, end: int) -> tuple[list[Change], int]:
        """Replays records that another leader, or this one before it became active, wrote."""
        image = self.images.committed
        changes: list[Change] = []
        count = size = 0
        for header, batch in self.log.read(self.committed, end):
            records = [] if header.is_control else decoded(batch)
            barrier, base = self.deletions, header.base_offset
            if base >= barrier.limit and not only_removals(records):
                break
            count += len(records)
            barrier.check_batch(header, records, image)
            if base >= barrier.limit:
                continue  # those that follow may share its note
            for offset, record in enumerate(records, base):
                changes += image.apply(offset, record)
            image.epoch, image.applied_offset = header.leader_epoch, header.last_offset
            size += header.size
            if count >= _AT_ONCE:
                break
        return changes, size

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot_due(self, now_ms: int) -> bool:
        """True if a snapshot should begin. Never within a metadata transaction (KIP-868)."""
        return self.images.committed.pending is None and self.snapshots.due(now_ms)

    def begin_snapshot(self, now_ms: int) -> Unwritten:
        """A snapshot of what is committed."""
        voters = for_snapshot(self.electing.at(self.committed))
        return self.snapshots.begin_snapshot(self.images.committed, voters, now_ms)

    def snapshot(self, now_ms: int) -> list[str]:
        """All of it here and now. Raises StorageFailed."""
        unwritten = self.begin_snapshot(now_ms)
        unwritten.write_file(self._disk, self.log.folder)
        return self.snapshots.end_snapshot(unwritten, now_ms)


def _first_level(records: Sequence[object]) -> int:
    """The metadata.version that these first records of a cluster set."""
    for record in records:
        if isinstance(record, kraft.FeatureLevelRecord) and record.name == METADATA_VERSION:
            return record.feature_level
    return 0


def open_quorum(
    disk: Disk,
    node_id: int,
    log: MetadataLog,
    follower: Follower,
    limits: SnapshotLimits,
    vote: VotingSetup = ALONE,
) -> MetadataQuorum:
    """Over a log that was just opened. What is known to be agreed is replayed into the follower's
    image: all of an only voter's log, of others what a snapshot has or this node has acted upon.
    Raises MetadataUnreadable, StorageFailed."""
    # Who voted by a log that is lost is not alone because nothing names the others.
    others = vote.seeds or quorum_state.dynamic(disk, log.folder)
    static = Electorate(STATIC, vote.voters or (() if others else (Voter(node_id),)))
    ends = {True: log.end_offset, False: vote.published}
    guess = len(static.voters) == 1
    follower.load(ends[guess])
    electing = _history(log, follower, static)
    alone = electing.latest.keys in ({node_id: ANY}, {node_id: vote.directory})
    if ends[alone] != ends[guess]:
        follower.load(ends[alone])
        electing = _history(log, follower, static)
    epoch = max(log.last_epoch, follower.image.epoch)
    if epoch >= LAST:
        raise MetadataUnreadable(_NO_EPOCH_LEFT.format(log.folder, epoch))
    known, mended = quorum_state.mend(quorum_state.read(disk, log.folder), epoch)
    if epoch > known.epoch:  # the file is older, or another node's
        known = QuorumState(epoch, NOBODY, NOBODY)
    replica = Replica(
        node_id, electing.latest.keys, known, log, vote.chance, vote.now_ms, vote.times,
        follower.applied, vote.directory, vote.seeds,
    )  # fmt: skip
    quorum = MetadataQuorum(disk, node_id, log, follower, limits, replica, electing)
    quorum._elects()
    if mended:
        quorum.mended = f"{log.folder}/{quorum_state.NAME}: {mended}"
        with suppress(DiskFull):  # what it votes next is written before anybody hears of it
            quorum.remember(known)
    return quorum


def _history(log: MetadataLog, follower: Follower, static: Electorate) -> History:
    """The voters of the log: as the follower has replayed them, then by the rest of the log."""
    history = History(of_snapshot(follower.quorum, static))
    for header, batch in log.read(follower.applied, log.end_offset):
        if header.is_control:
            said = control_messages(batch)
            history.add_electorate(header.last_offset + 1, electorate_after(history.latest, said))
    return history
