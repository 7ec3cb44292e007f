"""A consumer group (KIP-848): what its records say, and when its members are due.

Each record is kept as it is, by member id, so that the order in which compaction leaves them does
not matter. `settle_…` are the only way in, live and at load. Deadlines are in memory alone.
Invariant: `owners` names, for each partition that a member holds or has not yet given up, that
member; `static_members` names the member of each instance id.
"""

from collections.abc import Iterator

from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.config.bounds import CONSUMER_MEMBERS
from appliance.coordinators.groups.consumer_records import (
    ConsumerGroupMetadataValue,
    MemberMetadataValue,
    RegexValue,
    TargetMetadataValue,
)
from appliance.coordinators.groups.reconcile import STABLE, Current, Held, Target
from appliance.coordinators.groups.state import Group, HeldBytes, Turn, refuse
from appliance.coordinators.runtime.call import NEVER
from appliance.metadata.image import MetadataImage

GROUP_CONFIG = 32
"""The resource type of a group's own settings."""
FIRST_EPOCH = 1
"""Of a group without members; whoever joins first makes it the next one, as in Kafka."""
_NOWHERE = Current()
_MEMBER_BYTES = 512
"""Of memory that a member takes besides what it says."""
_NAME_BYTES = 64
"""The same for a name of a topic."""


@dataclass(slots=True)
class Deadlines:
    """When a member is put out, ms. session: unless it is heard of. rebalance: unless it gave up
    what it must. join, sync: unless it sends that request (classic members)."""

    session: int = NEVER
    rebalance: int = NEVER
    join: int = NEVER
    sync: int = NEVER

    def first(self) -> int:
        return min(self.session, self.rebalance, self.join, self.sync)


def bytes_of(member: MemberMetadataValue | None) -> int:
    """Bytes of memory that what a member says of itself takes; 0 for none."""
    if member is None:
        return 0
    texts = (member.instance_id, member.rack_id, member.client_id, member.topic_regex)
    content = sum(len(text) for text in texts if text)
    names = sum(map(len, member.topic_names))
    return _MEMBER_BYTES + content + names + _NAME_BYTES * len(member.topic_names)


class ConsumerState(Group):
    """epoch: of the group; assignment_epoch: for which the targets were computed.

    members, targets, currents: by member id, from three records each. regexes: what each regular
    expression names. image_offset: of the metadata that was last held against the subscriptions.
    rights: of the member that was heard of last, None: of nobody since it was loaded.
    """

    def __init__(self, group_id: str, held: HeldBytes | None = None) -> None:
        super().__init__(group_id, held)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, MemberMetadataValue] = {}
        self.targets: dict[str, Target] = {}
        self.currents: dict[str, Current] = {}
        self.regexes: dict[str, RegexValue] = {}
        self.static_members: dict[str, str] = {}
        self.owners: dict[tuple[bytes, int], str] = {}
        self.has_old_metadata = False
        self.deadlines: dict[str, Deadlines] = {}
        self.image_offset = -1
        self.rights: Rights | None = None
        self._topics: dict[str, None] | None = None

    # What records do ------------------------------------------------------------------------------

    def settle_epoch(self, value: ConsumerGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def settle_target_epoch(self, value: TargetMetadataValue | None) -> None:
        self.assignment_epoch = 0 if value is None else value.assignment_epoch

    def settle_member(self, member_id: str, value: MemberMetadataValue | None) -> None:
        before = self.members.get(member_id)
        if before is not None and self.static_members.get(before.instance_id or "") == member_id:
            del self.static_members[before.instance_id or ""]
        self._topics = None
        self.hold_bytes(bytes_of(value) - bytes_of(before))
        if value is None:
            self.members.pop(member_id, None)
            self.deadlines.pop(member_id, None)
            return
        self.members[member_id] = value
        if value.instance_id is not None:
            self.static_members[value.instance_id] = member_id

    def settle_target(self, member_id: str, target: Target | None) -> None:
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    def settle_current(self, member_id: str, current: Current | None) -> None:
        for place in _places(self.currents.get(member_id)):
            if self.owners.get(place) == member_id:
                del self.owners[place]
        if current is None:
            self.currents.pop(member_id, None)
            return
        self.currents[member_id] = current
        for place in _places(current):
            self.owners[place] = member_id

    def settle_regex(self, regex: str, value: RegexValue | None) -> None:
        self._topics = None
        if value is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = value

    # What follows from them -----------------------------------------------------------------------

    def current(self, member_id: str) -> Current:
        """Where a member stands."""
        return self.currents.get(member_id, _NOWHERE)

    def is_reconciled(self, member_id: str) -> bool:
        """True if the member owns all of its target and nothing else."""
        current = self.current(member_id)
        return current.state == STABLE and current.epoch == self.assignment_epoch

    def topics_of(self, member: MemberMetadataValue) -> tuple[str, ...]:
        """The names that a member reads; some may not exist."""
        found = self.regexes.get(member.topic_regex) if member.topic_regex else None
        return member.topic_names if found is None else (*member.topic_names, *found.topics)

    def topics(self) -> dict[str, None]:
        """The names that any member reads."""
        if self._topics is None:
            self._topics = {}
            for member in self.members.values():
                self._topics.update(dict.fromkeys(self.topics_of(member)))
        return self._topics

    def topic_ids_of(self, member: MemberMetadataValue, image: MetadataImage) -> frozenset[bytes]:
        """The ids of the topics that a member reads, of those that exist."""
        known = image.topics_by_name
        return frozenset(known[name].topic_id for name in self.topics_of(member) if name in known)

    def is_free(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """True if no other member holds the partition."""
        return self.owners.get((topic_id, partition), member_id) == member_id

    def check_member(self, member_id: str, instance_id: str | None) -> MemberMetadataValue:
        """The member. Raises PeerError(FENCED_INSTANCE_ID or UNKNOWN_MEMBER_ID)."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise PeerError(errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
            if current != member_id:
                raise PeerError(
                    errors.FENCED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} was fenced by "
                    f"member {current}.",
                )
        member = self.members.get(member_id)
        if member is None:
            raise PeerError(
                errors.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def check_room(self, turn: Turn, member_id: str) -> None:
        """Checks that the member belongs to the group or still fits into it
        (group.consumer.max.size). Raises PeerError(GROUP_MAX_SIZE_REACHED).
        """
        limit = turn.state.settings.consumer_max_size
        if member_id not in self.members and len(self.members) >= limit:
            refuse(turn, CONSUMER_MEMBERS, self.group_id, "the group has no more room")
            raise PeerError(
                errors.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {limit} members."
                f" More may join {self.group_id} when group.consumer.max.size is larger.",
            )

    # Deadlines ------------------------------------------------------------------------------------

    def due(self, member_id: str) -> Deadlines:
        """The deadlines of a member, to be changed in place."""
        found = self.deadlines.get(member_id)
        if found is None:
            found = self.deadlines[member_id] = Deadlines()
        return found

    def keep_alive(self, turn: Turn, member_id: str) -> None:
        """The member was heard of: its session begins anew."""
        classic = self.members[member_id].classic
        timeout = self.session_timeout_ms(turn) if classic is None else classic.session_timeout
        deadline = self.due(member_id).session = turn.now_ms + timeout
        turn.wake_at(self, deadline)

    def session_timeout_ms(self, turn: Turn) -> int:
        """The session timeout of members that speak the consumer protocol."""
        settings = turn.state.settings
        return self._own_setting(
            turn, "consumer.session.timeout.ms", settings.consumer_session_timeout_ms
        )

    def heartbeat_interval_ms(self, turn: Turn) -> int:
        """How often members are to be heard of."""
        settings = turn.state.settings
        return self._own_setting(
            turn, "consumer.heartbeat.interval.ms", settings.consumer_heartbeat_interval_ms
        )

    def _own_setting(self, turn: Turn, name: str, default: int) -> int:
        own = turn.state.image.configs.get((GROUP_CONFIG, self.group_id))
        return default if own is None else int(own.get(name, default))


def _places(current: Current | None) -> Iterator[tuple[bytes, int]]:
    if current is not None:
        for held in (current.assigned, current.revoking):
            for topic_id, partitions in held.items():
                for partition in partitions:
                    yield topic_id, partition


def without_epochs(held: Held) -> Target:
    """The partitions that a member holds."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in held.items()}
