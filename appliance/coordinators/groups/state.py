"""A group coordinator's state of one partition: its groups and their committed offsets, and the
interface of a group to the rest of the coordinator whatever protocol its members speak.

Offsets, expiry, listing and deletion know groups by the methods of `Group` only. A method that
refuses raises PeerError with Kafka's code. Classic APIs that reach a group of another protocol land
in the `classic_…` methods.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, TypeAlias

from appliance.base.errors import (
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    UNKNOWN_MEMBER_ID,
    PeerError,
)
from appliance.config.bounds import GROUP_BYTES, GROUPS, setting_of
from appliance.coordinators.groups.offset_store import OffsetStore
from appliance.coordinators.groups.pending_offsets import PendingOffsets
from appliance.coordinators.groups.settings import GroupSettings
from appliance.coordinators.runtime import turn as runtime
from appliance.coordinators.runtime.call import Call, expiry_time
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.runtime.room import ShardRoom
from appliance.metadata.image import MetadataImage

_SHOWN: Final = 100  # characters of a name in an event


class HeldBytes:
    """total: bytes of what members of all groups have said of themselves."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0


class Group(runtime.Timed):
    """group_id: its name. held: counts what all groups keep of what clients say. held_bytes: the
    share of this one, its name included."""

    KIND: ClassVar = ""  # as ListGroups shows it (KIP-848)

    def __init__(self, group_id: str, held: HeldBytes | None = None) -> None:
        super().__init__()
        self.group_id = group_id
        self.held_bytes = 0
        self._held = HeldBytes() if held is None else held
        self.hold_bytes(len(group_id))

    def hold_bytes(self, more: int) -> None:
        """It keeps so many bytes more."""
        self.held_bytes += more
        self._held.total += more

    def wake_up(self, turn: "Turn") -> None:
        groups = turn.state.groups
        if groups.get(self.group_id) is not self:
            return
        self.expire(turn)
        if groups.get(self.group_id) is self:
            # Of a huge group every look costs: it is looked at less often.
            grain_ms = 1 + self.size() // 1000
            turn.wake_at(self, max(self.next_deadline_ms(), turn.now_ms + grain_ms))

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
        """True if the group has no members and may be deleted."""

    @abstractmethod
    def size(self) -> int:
        """How many members and future members it has, roughly."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """True if a member uses the offsets of this topic."""

    @abstractmethod
    def offset_kept_from(self, commit_timestamp: int) -> int | None:
        """From when (ms) the retention of an offset counts; None while it must not expire."""

    # What it allows -------------------------------------------------------------------------------

    @abstractmethod
    def check_commit(self, turn: "Turn", call: Call, request: Any) -> None:
        """Refuse an OffsetCommit of somebody who is no (current) member; keep a member alive."""

    @abstractmethod
    def check_pending_commit(self, turn: "Turn", request: Any) -> None:
        """Refuse a TxnOffsetCommit of somebody who says that it is a member and is none."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse an OffsetFetch (version 9 on: with member id and epoch)."""

    @abstractmethod
    def check_delete(self) -> None:
        """Refuse DeleteGroups."""

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Refuse OffsetDelete."""

    def release(self) -> None:
        """It is kept no more: nor is what its members said."""
        self._held.total -= self.held_bytes
        self.held_bytes = 0

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


class GroupsState:
    """partition: of `__consumer_offsets`. groups: by id. offsets: what was committed.
    pending: what was committed in transactions that are open.

    image: the metadata that this process follows. new_id: gives 16 random bytes for a member id.
    believed: as `Lent` has it. room: for more groups. held: in memory, of all groups.
    Invariant: only `replay` changes groups, offsets and what is pending.
    """

    def __init__(
        self,
        partition: int,
        settings: GroupSettings,
        image: MetadataImage,
        new_id: Callable[[], bytes],
        believed: Callable[[int], int] = expiry_time,
        room: ShardRoom | None = None,
    ) -> None:
        self.room = ShardRoom() if room is None else room
        self.held = HeldBytes()
        self.partition = partition
        self.settings = settings
        self.image = image
        self.new_id = new_id
        self.believed = believed
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.pending = PendingOffsets()

    def owns(self, group_id: str) -> bool:
        """True if the group belongs to this partition."""
        return partition_of(group_id, self.settings.partitions) == self.partition


Turn: TypeAlias = runtime.Turn[GroupsState]
"""A turn of a group coordinator."""


def check_room(turn: Turn, group_id: str) -> None:
    """Raises PeerError(GROUP_MAX_SIZE_REACHED) where there is no room for one more group."""
    if group_id in turn.state.groups:
        return
    room = turn.state.room
    if room.is_full():
        raise refuse(turn, GROUPS, group_id, f"{room.most} groups are kept")
    check_bytes(turn, group_id, len(group_id))


def check_bytes(turn: Turn, group_id: str, more: int) -> None:
    """The same where names and what members say are too much to keep so many bytes more."""
    room = turn.state.room
    if room.lacks(more):
        why = f"groups and their members say more than {room.most_bytes} bytes of themselves"
        raise refuse(turn, GROUP_BYTES, group_id, why)


def refuse(
    turn: Turn, bound: str, group_id: str, why: str, code: int = GROUP_MAX_SIZE_REACHED
) -> PeerError:
    """The refusal of what is beyond a bound, which the log is told of."""
    told = {"bound": bound, "group": group_id[:_SHOWN], "why": f"{why}: {setting_of(bound)}"}
    turn.add_note("bound-reached", bound, told, is_loss=True)
    return PeerError(code, f"{why}; raise {setting_of(bound)}")
