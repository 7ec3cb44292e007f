"""What every group is to the rest of the coordinator, whatever protocol its members speak.

Offsets, expiry, listing and deletion know groups by these methods only. A method that refuses
raises PeerError with Kafka's code. Classic APIs that reach a group of another protocol land in the
`classic_…` methods.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from appliance.base.errors import INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, PeerError
from appliance.coordinators.call import NEVER, Call

if TYPE_CHECKING:
    from appliance.coordinators.turn import Turn


class Group:
    """group_id: its name. scheduled_ms: the earliest wake-up that the shard holds for it."""

    KIND: ClassVar = ""  # as ListGroups shows it (KIP-848)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.scheduled_ms = NEVER

    # What it is -----------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """As Kafka's tools show it."""
        raise NotImplementedError

    @property
    def shown_protocol_type(self) -> str:
        """The protocol type in listings, "" for a group that nobody joined."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        """Whether it has no members, so that it may be deleted."""
        raise NotImplementedError

    def size(self) -> int:
        """How many members and future members it has, roughly."""
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the offsets of this topic are in use by a member."""
        raise NotImplementedError

    def offset_kept_from(self, commit_timestamp: int) -> int | None:
        """From when (ms) the retention of an offset counts; None while it must not expire."""
        raise NotImplementedError

    # What it allows -------------------------------------------------------------------------------

    def check_commit(self, turn: "Turn", call: Call, request: Any) -> None:
        """Refuse an OffsetCommit of somebody who is no (current) member; keep a member alive."""
        raise NotImplementedError

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse an OffsetFetch (version 9 on: with member id and epoch)."""

    def check_delete(self) -> None:
        """Refuse DeleteGroups."""
        raise NotImplementedError

    def check_offset_delete(self) -> None:
        """Refuse OffsetDelete."""
        raise NotImplementedError

    # What happens to it ---------------------------------------------------------------------------

    def write_tombstones(self, turn: "Turn") -> None:
        """Write what removes the group itself (not its offsets)."""
        raise NotImplementedError

    def loaded(self, turn: "Turn") -> None:
        """All records were replayed: members have a fresh session."""

    def next_deadline_ms(self) -> int:
        """When `expire` has something to do, NEVER if nothing is due."""
        return NEVER

    def expire(self, turn: "Turn") -> None:
        """Do what is due at turn.now_ms."""

    def parked(self) -> Iterator[Call]:
        """The requests that wait for an answer."""
        return iter(())

    def parked_refusal(self, call: Call, code: int) -> dict[str, Any]:
        """The answer to a parked request that carries an error."""
        raise NotImplementedError

    # Classic APIs on a group of another protocol --------------------------------------------------

    def classic_join(self, turn: "Turn", call: Call, request: Any) -> None:
        """JoinGroup."""
        raise PeerError(INCONSISTENT_GROUP_PROTOCOL, f"{self.group_id} is no classic group")

    def classic_sync(self, turn: "Turn", call: Call, request: Any) -> None:
        """SyncGroup."""
        raise PeerError(UNKNOWN_MEMBER_ID, f"{self.group_id} is no classic group")

    def classic_heartbeat(self, turn: "Turn", call: Call, request: Any) -> None:
        """Heartbeat."""
        raise PeerError(UNKNOWN_MEMBER_ID, f"{self.group_id} is no classic group")

    def classic_leave(self, turn: "Turn", call: Call, request: Any) -> None:
        """LeaveGroup."""
        raise PeerError(UNKNOWN_MEMBER_ID, f"{self.group_id} is no classic group")
