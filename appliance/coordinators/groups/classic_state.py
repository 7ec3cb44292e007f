"""A classic group: its members and where its rebalance stands.

Durable is what its record holds: generation, protocol, leader, members with subscription and
assignment, as of the last finished rebalance. `settle` is the only way in for it, live and at load.
Between two records the group is on the way to the next one, in memory only. Invariant, outside of
a call: a Stable group has members and each of them an assignment, an Empty one has none.

    Empty ──join──> PreparingRebalance ──all joined──> CompletingRebalance ──leader syncs──> Stable
                     ^ a member comes, goes or changes, from the other two ───────────────────┘
                     └ nobody is left ──> Empty
"""

from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups.members import Member, Protocols, bytes_of, recorded, restored
from appliance.coordinators.groups.records import GroupMetadataKey, GroupMetadataValue
from appliance.coordinators.groups.state import Group, HeldBytes, Turn
from appliance.coordinators.groups.subscription import CONSUMER, topics_of
from appliance.coordinators.runtime.call import NEVER, Call

EMPTY: Final = "Empty"
PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"

RECORD_VERSION: Final = 3  # what Kafka 4.3 writes


PENDING_BYTES: Final = 256
"""Of memory that an id takes besides its text."""


class ClassicState(Group):
    """Attributes, times in ms.

    members: by id, in the order of joining. static_members: instance id → member id.
    pending_joins: ids given out (KIP-394) → until when they must be used.
    awaiting_join, awaiting_sync: member id → its parked request.
    pending_syncs: members that owe a SyncGroup in this generation.
    support: protocol → how many members support it.
    subscribed: topics that members use; None when nobody here can tell.
    join_deadline_ms, sync_deadline_ms: when the phase under way ends whatever is missing.
    initial_delay_ms, initial_left_ms, grew: the waiting for more members of a new group.
    """

    def __init__(self, group_id: str, held: HeldBytes | None = None) -> None:
        super().__init__(group_id, held)
        self.state = EMPTY
        self.previous_state = EMPTY
        self.state_since_ms = -1
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: dict[str, int] = {}
        self.awaiting_join: dict[str, Call] = {}
        self.awaiting_sync: dict[str, Call] = {}
        self.pending_syncs: dict[str, None] = {}
        self.support: dict[str, int] = {}
        self.subscribed: dict[str, None] | None = None
        self.join_deadline_ms = NEVER
        self.sync_deadline_ms = NEVER
        self.initial_delay_ms = 0
        self.initial_left_ms = 0
        self.grew = False

    # Members --------------------------------------------------------------------------------------

    def add(self, member: Member, protocol_type: str) -> None:
        """Take in a member whose protocols were found supported."""
        assert member.member_id not in self.members
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._enter(member)
        self.forget_pending(member.member_id)

    def give_out(self, member_id: str, until_ms: int) -> None:
        """A member to be has this id until then."""
        assert member_id not in self.pending_joins
        self.pending_joins[member_id] = until_ms
        self.hold_bytes(PENDING_BYTES + len(member_id))

    def forget_pending(self, member_id: str) -> bool:
        """The id is used, or not waited for any longer; False if it was not given out."""
        if self.pending_joins.pop(member_id, None) is None:
            return False
        self.hold_bytes(-PENDING_BYTES - len(member_id))
        return True

    def _enter(self, member: Member) -> None:
        self.members[member.member_id] = member
        self.hold_bytes(member.held_bytes())
        self._count(member.protocols, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Forget a member or a pending one; the leadership goes to the eldest."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.hold_bytes(-member.held_bytes())
            self._count(member.protocols, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        for waiting in (self.awaiting_join, self.awaiting_sync):
            waiting.pop(member_id, None)
        self.forget_pending(member_id)
        self.pending_syncs.pop(member_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def rename_static(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """The static member came back under a new id and takes over what the old one had."""
        member = self.members.pop(old_id)
        self.hold_bytes(len(new_id) - len(old_id))
        member.member_id = new_id
        self.members[new_id] = member
        self.static_members[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.pending_syncs:
            del self.pending_syncs[old_id]
            self.pending_syncs[new_id] = None
        return member

    def change_protocols(self, member: Member, protocols: Protocols) -> None:
        """The member supports these from now on."""
        self.hold_bytes(bytes_of(protocols) - bytes_of(member.protocols))
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def _count(self, protocols: Protocols, change: int) -> None:
        for name in dict(protocols):
            left = self.support.get(name, 0) + change
            if left:
                self.support[name] = left
            else:
                del self.support[name]

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """True if a member with these protocols could join."""
        if self.state == EMPTY:
            return bool(protocol_type and protocols)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.support.get(name, 0) == count for name, _ in protocols
        )

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member. Raises PeerError(FENCED_INSTANCE_ID or UNKNOWN_MEMBER_ID)."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is not None and current != member_id:
                raise PeerError(
                    errors.FENCED_INSTANCE_ID,
                    f"{member_id} of instance {instance_id} was replaced by {current}",
                )
            if current is None:
                raise unknown_member(member_id, self.group_id)
        member = self.members.get(member_id)
        if member is None:
            raise unknown_member(member_id, self.group_id)
        return member

    # The rebalance --------------------------------------------------------------------------------

    def become(self, state: str, now_ms: int) -> None:
        """Go on to the next state."""
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    def everybody_joined(self) -> bool:
        """True if every member waits for the next generation and no pending member is still to
        join.
        """
        return len(self.awaiting_join) == len(self.members) and not self.pending_joins

    def rebalance_timeout_ms(self) -> int:
        """The longest of the members'."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def elect_leader(self) -> bool:
        """See that the leader is a member who joined; False when nobody did."""
        if self.leader not in self.awaiting_join:
            joined = next((one for one in self.members if one in self.awaiting_join), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    def select_protocol(self) -> str:
        """The protocol that all support and most prefer; of equals the one voted for first."""
        assert self.members, f"an empty group selects no protocol: {self.group_id}"
        count = len(self.members)
        candidates = {name: None for name, one in self.support.items() if one == count}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def find_subscribed(self) -> dict[str, None] | None:
        """The topics that the members subscribed to, None when that cannot be told."""
        if self.protocol_type != CONSUMER:
            return None
        topics: dict[str, None] = {}
        for member in self.members.values():
            found = topics_of(member.metadata(self.protocol))
            if found is None:
                return None
            topics.update(dict.fromkeys(found))
        return topics

    def keep_alive(self, turn: Turn, member: Member) -> None:
        """The member was heard of: its session begins anew."""
        member.deadline_ms = turn.now_ms + member.session_timeout_ms
        turn.wake_at(self, member.deadline_ms)

    # What is durable ------------------------------------------------------------------------------

    def write_record(self, turn: Turn, assignments: dict[str, bytes]) -> None:
        """Write the group's record with these assignments by member id."""
        members = tuple(
            recorded(member, self.protocol, assignments.get(member.member_id, b""))
            for member in self.members.values()
        )
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=turn.wall_ms,
            members=members,
        )
        turn.write_record(GroupMetadataKey(group=self.group_id), value, RECORD_VERSION)

    def apply_record(self, value: GroupMetadataValue) -> None:
        """Be what the record says. Called by replay alone."""
        self.release()
        self.hold_bytes(len(self.group_id))
        self.hold_bytes(sum(PENDING_BYTES + len(one) for one in self.pending_joins))
        before, self.members = self.members, {}
        self.static_members, self.support = {}, {}
        for found in value.members:
            member = before.get(found.member_id)
            if member is None or recorded(member, value.protocol, found.assignment) != found:
                member = restored(found, value.protocol)
            member.assignment = found.assignment
            self._enter(member)
        self.protocol_type = value.protocol_type or None
        self.generation = value.generation
        self.protocol = value.protocol
        self.leader = value.leader
        self.state_since_ms = value.current_state_timestamp
        self.previous_state = self.state
        self.state = STABLE if self.members else EMPTY
        self.subscribed = self.find_subscribed()


def unknown_member(member_id: str, group_id: str) -> PeerError:
    """He is no member: he must join anew."""
    return PeerError(errors.UNKNOWN_MEMBER_ID, f"{member_id!r} is no member of {group_id}")
