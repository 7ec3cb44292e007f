"""What every group is to the rest of the coordinator, whatever protocol its members speak.

Offsets, expiry, listing and deletion know groups by these methods only. A method that refuses
raises PeerError with Kafka's code. Classic APIs that reach a group of another protocol land in the
`classic_…` methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from appliance.base.errors import INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, PeerError
from appliance.coordinators.call import NEVER, Call

if TYPE_CHECKING:
    from appliance.coordinators.turn import Turn


class Group(ABC):
    """group_id: its name. scheduled_ms: the earliest wake-up that the shard holds for it."""

    KIND: ClassVar = ""  # as ListGroups shows it (KIP-848)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.scheduled_ms = NEVER

    # What it is -----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def state_name(self) -> str:
        """As Kafka's tools show it."""

    @property
    @abstractmethod
    def shown_protocol_type(self) -> str:
        """The protocol type in listings, "" for a group that nobody joined."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it has no members, so that it may be deleted."""

    @abstractmethod
    def size(self) -> int:
        """How many members and future members it has, roughly."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the offsets of this topic are in use by a member."""

    @abstractmethod
    def offset_kept_from(self, commit_timestamp: int) -> int | None:
        """From when (ms) the retention of an offset counts; None while it must not expire."""

    # What it allows -------------------------------------------------------------------------------

    @abstractmethod
    def check_commit(self, turn: "Turn", call: Call, request: Any) -> None:
        """Refuse an OffsetCommit of somebody who is no (current) member; keep a member alive."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse an OffsetFetch (version 9 on: with member id and epoch)."""

    @abstractmethod
    def check_delete(self) -> None:
        """Refuse DeleteGroups."""

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Refuse OffsetDelete."""

    # What happens to it ---------------------------------------------------------------------------

    @abstractmethod
    def write_tombstones(self, turn: "Turn") -> None:
        """Write what removes the group itself (not its offsets)."""

    @abstractmethod
    def loaded(self, turn: "Turn") -> None:
        """All records were replayed: members have a fresh session."""

    @abstractmethod
    def next_deadline_ms(self) -> int:
        """When `expire` has something to do, NEVER if nothing is due."""

    @abstractmethod
    def expire(self, turn: "Turn") -> None:
        """Do what is due at turn.now_ms."""

    @abstractmethod
    def parked(self) -> Iterator[Call]:
        """The requests that wait for an answer."""

    @abstractmethod
    def parked_refusal(self, call: Call, code: int) -> dict[str, Any]:
        """The answer to a parked request that carries an error."""

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
