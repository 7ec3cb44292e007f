"""A consumer group as the rest of the coordinator sees it: what it shows, allows, goes through."""

from collections.abc import Iterator
from typing import Any, ClassVar

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups import consumer_classic, consumer_leave
from appliance.coordinators.groups.consumer_records import MemberMetadataValue
from appliance.coordinators.groups.consumer_state import ConsumerState
from appliance.coordinators.groups.consumer_target import watch_revocation, write_group_tombstones
from appliance.coordinators.groups.reconcile import Current
from appliance.coordinators.groups.state import Turn
from appliance.coordinators.groups.subscription import CONSUMER
from appliance.coordinators.runtime.call import NEVER, Call
from appliance.metadata.image import MetadataImage

MEMBER_EPOCH_SINCE = 9
"""OffsetCommit: from this version on the generation may be a member epoch."""


class ConsumerGroup(ConsumerState):
    """Members, targets and places behind the methods of every group."""

    KIND: ClassVar = "consumer"

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(self.is_reconciled(member_id) for member_id in self.members):
            return "Stable"
        return "Reconciling"

    @property
    def shown_protocol_type(self) -> str:
        return CONSUMER

    def is_empty(self) -> bool:
        return not self.members

    def size(self) -> int:
        return len(self.members)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics()

    def offset_kept_from(self, commit_timestamp: int) -> int | None:
        """Offsets of subscribed topics never expire; others expire from the time of each commit."""
        return commit_timestamp

    def check_commit(self, turn: Turn, call: Call, request: Any) -> None:
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return
        member = self.check_member(request.member_id, None)
        if member.classic is None and call.version < MEMBER_EPOCH_SINCE:
            raise PeerError(
                errors.UNSUPPORTED_VERSION,
                f"members of the consumer protocol need OffsetCommit {MEMBER_EPOCH_SINCE}",
            )
        current = self.current(request.member_id)
        if epoch != current.epoch:
            _check_older_epoch(epoch, member, current, request, turn.state.image)

    def check_pending_commit(self, turn: Turn, request: Any) -> None:
        epoch = getattr(request, "generation_id", -1)
        member_id = getattr(request, "member_id", "")
        instance_id = getattr(request, "group_instance_id", None)
        if epoch < 0 and not self.members:
            return
        if epoch == -1 and not member_id and instance_id is None:
            return
        member = self.check_member(member_id, None)
        current = self.current(member_id)
        if epoch != current.epoch:
            try:
                _check_older_epoch(epoch, member, current, request, turn.state.image)
            except PeerError as stale:  # the producer knows of generations only
                raise PeerError(errors.ILLEGAL_GENERATION, stale.message) from stale

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.check_member(member_id or "", None)
        epoch = self.current(member_id or "").epoch
        if member_epoch != epoch:
            raise _stale(member, f"the member's epoch is {epoch}, not {member_epoch}")

    def check_delete(self) -> None:
        if self.members:
            raise PeerError(errors.NON_EMPTY_GROUP, f"{self.group_id} has members")

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody reads may go at any time."""

    def write_tombstones(self, turn: Turn) -> None:
        write_group_tombstones(turn, self)

    def next_deadline_ms(self) -> int:
        return min((due.first() for due in self.deadlines.values()), default=NEVER)

    def parked(self) -> Iterator[Call]:
        """Always empty: heartbeats of this protocol are answered at once."""
        return iter(())

    def parked_refusal(self, call: Call, code: int) -> dict[str, Any]:
        raise AssertionError("nothing is parked in a consumer group")

    def loaded(self, turn: Turn) -> None:
        for member_id in self.members:
            self.keep_alive(turn, member_id)
            watch_revocation(turn, self, member_id)

    def expire(self, turn: Turn) -> None:
        consumer_leave.expire(turn, self)

    # Classic members ------------------------------------------------------------------------------

    def classic_join(self, turn: Turn, call: Call, request: Any) -> None:
        consumer_classic.join(turn, call, request, self)

    def classic_sync(self, turn: Turn, call: Call, request: Any) -> None:
        consumer_classic.sync(turn, call, request, self)

    def classic_heartbeat(self, turn: Turn, call: Call, request: Any) -> None:
        consumer_classic.heartbeat(turn, call, request, self)

    def classic_leave(self, turn: Turn, call: Call, request: Any) -> None:
        consumer_classic.leave(turn, call, request, self)


def _check_older_epoch(
    epoch: int, member: MemberMetadataValue, current: Current, request: Any, image: MetadataImage
) -> None:
    """A commit may be older than the member's newest epoch, but not than the epoch in which the
    member was given the partition: before that somebody else may have had it (KIP-1251)."""
    if epoch > current.epoch:
        raise _stale(member, f"the member's epoch is {current.epoch}, not {epoch}")
    for asked in request.topics:
        topic_id = _topic_id(asked, image)
        assigned, revoking = current.assigned.get(topic_id, {}), current.revoking.get(topic_id, {})
        for one in asked.partitions:
            since = assigned.get(one.partition_index, revoking.get(one.partition_index))
            if since is None or epoch < since:
                raise _stale(
                    member,
                    f"partition {one.partition_index} is the member's since epoch {since}, "
                    f"it commits in {epoch}",
                )


def _topic_id(asked: Any, image: MetadataImage) -> bytes:
    by_id: bytes = getattr(asked, "topic_id", b"")
    if by_id:
        return by_id
    topic = image.topics_by_name.get(asked.name)
    return bytes(16) if topic is None else topic.topic_id


def _stale(member: MemberMetadataValue, message: str) -> PeerError:
    classic = member.classic is not None
    return PeerError(errors.ILLEGAL_GENERATION if classic else errors.STALE_MEMBER_EPOCH, message)
