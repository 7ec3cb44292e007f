"""A group changes its protocol while its members work: classic → consumer when the first member
of the consumer protocol joins, back when the last one goes (KIP-848, online migration).

Members of the other protocol keep what they own. Invariant: a conversion either writes all of its
records or refuses before the first one. Callers: `consumer_heartbeat`, `consumer_leave`,
`consumer_classic`.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups import embedded
from appliance.coordinators.groups.classic_answers import join_refused, sync_refused
from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.classic_rebalance import prepare
from appliance.coordinators.groups.classic_state import RECORD_VERSION
from appliance.coordinators.groups.consumer_records import (
    ClassicMember,
    ClassicProtocol,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentKey,
    MemberMetadataKey,
    MemberMetadataValue,
    TargetKey,
    TargetMetadataKey,
    TargetMetadataValue,
)
from appliance.coordinators.groups.consumer_state import ConsumerState, without_epochs
from appliance.coordinators.groups.consumer_target import write_group_tombstones
from appliance.coordinators.groups.members import Member, Protocols
from appliance.coordinators.groups.reconcile import (
    Current,
    Held,
    Target,
    current_value,
    target_value,
)
from appliance.coordinators.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from appliance.coordinators.groups.state import Group, Turn
from appliance.coordinators.groups.subscription import CONSUMER
from appliance.metadata.image import MetadataImage

UPGRADE: Final = ("upgrade", "bidirectional")
DOWNGRADE: Final = ("downgrade", "bidirectional")
"""Values of group.consumer.migration.policy."""


def enter(turn: Turn, request: Any, group: Group | None) -> ConsumerState | None:
    """The consumer group that a heartbeat belongs to, where there is none of this name yet.

    group: what there is. None comes back when the member's record will make the group. Raises
    PeerError(UNKNOWN_MEMBER_ID) unless the member joins, PeerError(GROUP_ID_NOT_FOUND) for a
    classic group that cannot change.
    """
    if request.member_epoch != 0:
        raise no_such_group(request.group_id, group)
    if group is None:
        return None
    assert isinstance(group, ClassicGroup), f"a group of kind {group.KIND}"
    if group.is_empty():
        group.write_tombstones(turn)
        return None
    return _upgrade(turn, group)


def no_such_group(group_id: str, group: Group | None) -> PeerError:
    """The error of a later heartbeat when the consumer group does not exist: UNKNOWN_MEMBER_ID, so
    that the client joins again. Clients would stop upon Kafka's GROUP_ID_NOT_FOUND.
    """
    why = f"Consumer group {group_id} not found."
    if group is not None:
        why = f"Group {group_id} is not a consumer group."
    return PeerError(errors.UNKNOWN_MEMBER_ID, f"{why} The member must join again.")


# Classic → consumer -------------------------------------------------------------------------------


class _Convert(NamedTuple):
    member_id: str
    metadata: MemberMetadataValue
    held: Held


def _upgrade(turn: Turn, group: ClassicGroup) -> ConsumerState:
    if why := _hindrance(turn, group):
        raise PeerError(
            errors.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {group.group_id} to consumer group because {why}.",
        )
    converts = _read(group, turn.state.image)
    _call_back(turn, group)
    generation, group_id = group.generation, group.group_id
    group.write_tombstones(turn)
    for one in converts:
        turn.write_record(MemberMetadataKey(group=group_id, member=one.member_id), one.metadata)
    turn.write_record(
        ConsumerGroupMetadataKey(group=group_id), ConsumerGroupMetadataValue(epoch=generation)
    )
    for one in converts:
        target = target_value(without_epochs(one.held))
        turn.write_record(TargetKey(group=group_id, member=one.member_id), target)
    turn.write_record(
        TargetMetadataKey(group=group_id), TargetMetadataValue(assignment_epoch=generation)
    )
    made = turn.state.groups[group_id]
    assert isinstance(made, ConsumerState)
    for one in converts:
        place = Current(generation, generation, assigned=one.held)
        turn.write_record(CurrentKey(group=group_id, member=one.member_id), current_value(place))
        made.keep_alive(turn, one.member_id)
    return made


def _hindrance(turn: Turn, group: ClassicGroup) -> str:
    """Why a classic group with members cannot become a consumer group; empty when it can."""
    settings = turn.state.settings
    if settings.migration_policy not in UPGRADE:
        return (
            "the online upgrade is disabled: group.consumer.migration.policy is "
            f"{settings.migration_policy}, and would have to be upgrade or bidirectional"
        )
    if group.protocol_type != CONSUMER:
        return "the group does not use the consumer embedded protocol"
    if len(group.members) > settings.consumer_max_size:
        return (
            "the group exceeds the consumer group maximum size: it has "
            f"{len(group.members)} members, group.consumer.max.size is "
            f"{settings.consumer_max_size}"
        )
    return ""


def _read(group: ClassicGroup, image: MetadataImage) -> list[_Convert]:
    taken: dict[tuple[bytes, int], None] = {}
    converts = []
    for member in group.members.values():
        told = embedded.subscription(_metadata(group, member))
        held: Held = {}
        for name, partitions in embedded.assignment(member.assignment).items():
            topic = image.topics_by_name.get(name)
            for partition in partitions:
                # A leader may have given a partition to two; it was the client's mistake.
                if topic is not None and (topic.topic_id, partition) not in taken:
                    taken[topic.topic_id, partition] = None
                    held.setdefault(topic.topic_id, {})[partition] = group.generation
        metadata = MemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=told.rack,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=tuple(sorted(dict.fromkeys(told.topics))),
            topic_regex=None,
            rebalance_timeout=member.rebalance_timeout_ms,
            server_assignor=None,
            classic=classic_member(member.session_timeout_ms, member.protocols),
        )
        converts.append(_Convert(member.member_id, metadata, held))
    return converts


def _metadata(group: ClassicGroup, member: Member) -> bytes:
    return member.metadata(group.protocol) or member.protocols[0][1]


def classic_member(session_timeout_ms: int, protocols: Protocols) -> ClassicMember:
    """A classic member's session timeout and protocols in the form of its record."""
    rows = tuple(ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols)
    return ClassicMember(session_timeout=session_timeout_ms, protocols=rows)


def _call_back(turn: Turn, group: ClassicGroup) -> None:
    """Answers all parked JoinGroup and SyncGroup requests, so that these members join again."""
    code = errors.REBALANCE_IN_PROGRESS
    for member_id, call in group.awaiting_join.items():
        turn.answer(call, join_refused(call, member_id, code))
    for call in group.awaiting_sync.values():
        turn.answer(call, sync_refused(code))


# Consumer → classic -------------------------------------------------------------------------------


def may_downgrade(turn: Turn, group: ConsumerState, leaving: Sequence[str]) -> bool:
    """True if without these only classic members stay."""
    staying = len(group.members) - len(leaving)
    return (
        0 < staying <= turn.state.settings.max_size
        and turn.state.settings.migration_policy in DOWNGRADE
        and all((m.classic is None) == (one in leaving) for one, m in group.members.items())
    )


def downgrade(turn: Turn, group: ConsumerState, leaving: Sequence[str]) -> None:
    """Make it a classic group of those who stay, and have them join anew."""
    staying = {one: member for one, member in group.members.items() if one not in leaving}
    protocols = {one: protocols_of_classic(member) for one, member in staying.items()}
    chosen = _common(protocols)
    value = GroupMetadataValue(
        protocol_type=CONSUMER,
        generation=group.epoch,
        protocol=chosen,
        # Nobody leads yet: a shard that loads this before they have joined has them join.
        leader=None,
        current_state_timestamp=turn.wall_ms,
        members=tuple(
            _recorded(one, member, dict(protocols[one])[chosen], group, turn.state.image)
            for one, member in staying.items()
        ),
    )
    write_group_tombstones(turn, group)
    turn.write_record(GroupMetadataKey(group=group.group_id), value, RECORD_VERSION)
    made = turn.state.groups[group.group_id]
    assert isinstance(made, ClassicGroup)
    for classic in made.members.values():
        made.change_protocols(classic, protocols[classic.member_id])
        made.keep_alive(turn, classic)
    prepare(turn, made)


def protocols_of_classic(member: MemberMetadataValue) -> Protocols:
    """Name and metadata of each protocol, in the order of the member's preference."""
    assert member.classic is not None
    return tuple((one.name, one.metadata) for one in member.classic.protocols)


def _common(protocols: dict[str, Protocols]) -> str:
    """The first of the first member's protocols that all support. There is one: who has none in
    common with the others is not let in."""
    first, *others = protocols.values()
    for name, _ in first:
        if all(name in dict(other) for other in others):
            return name
    raise AssertionError(f"no common protocol in {list(protocols)}")


def _recorded(
    member_id: str,
    member: MemberMetadataValue,
    metadata: bytes,
    group: ConsumerState,
    image: MetadataImage,
) -> MemberMetadata:
    assert member.classic is not None
    # What it holds, not what it was to have: the group may change again before its members have
    # joined, and then this is what nobody else may be given.
    current = group.current(member_id)
    held = without_epochs(current.assigned)
    for topic_id, partitions in without_epochs(current.revoking).items():
        held[topic_id] = held.get(topic_id, frozenset()) | partitions
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout,
        session_timeout=member.classic.session_timeout,
        subscription=metadata,
        assignment=assignment_bytes(held, metadata, image),
    )


def assignment_bytes(target: Target, metadata: bytes, image: MetadataImage) -> bytes:
    """Partitions as a classic consumer reads them. metadata: its subscription."""
    by_name = {
        image.topics_by_id[topic_id].name: tuple(sorted(partitions))
        for topic_id, partitions in target.items()
        if topic_id in image.topics_by_id
    }
    return embedded.encode_assignment(by_name, embedded.version_of(metadata))
