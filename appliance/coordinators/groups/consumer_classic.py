"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in a consumer group.

While a group is on its way from one protocol to the other, its classic members are reconciled like
all others: the member epoch is their generation, REBALANCE_IN_PROGRESS tells them that there is
something new, JoinGroup says what they own, SyncGroup what they are to own. Nobody waits for
anybody, so nothing is parked. Caller: `ConsumerGroup`.
"""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups import classic_join, embedded, migration
from appliance.coordinators.groups.classic_answers import join_refused
from appliance.coordinators.groups.consumer_heartbeat import replace_static
from appliance.coordinators.groups.consumer_leave import fence
from appliance.coordinators.groups.consumer_records import MemberMetadataKey, MemberMetadataValue
from appliance.coordinators.groups.consumer_state import ConsumerState, without_epochs
from appliance.coordinators.groups.consumer_target import advance, refresh, write_group_tombstones
from appliance.coordinators.groups.members import Protocols, protocols_of
from appliance.coordinators.groups.reconcile import UNRELEASED, UNREVOKED, Owned
from appliance.coordinators.groups.state import Turn
from appliance.coordinators.groups.subscription import CONSUMER
from appliance.coordinators.runtime.call import NEVER, Call
from appliance.coordinators.runtime.records import fits
from appliance.metadata.image import MetadataImage

_MS: Final = timedelta(milliseconds=1)
_NONE: Final = {"throttle_time": 0, "error_code": errors.NONE}
_REBALANCE: Final = {"throttle_time": 0, "error_code": errors.REBALANCE_IN_PROGRESS}


def join(turn: Turn, call: Call, request: Any, group: ConsumerState) -> None:
    """Let a classic member in, or let it join again."""
    if not group.members:
        _begin_anew(turn, call, request, group)
        return
    protocols = protocols_of(request)
    _check_join(turn, request, group, protocols)
    instance_id = getattr(request, "group_instance_id", None)
    if (
        not request.member_id
        and instance_id is None
        and (call.version >= classic_join.KNOWN_ID_SINCE)
    ):
        answer = join_refused(call, _new_id(turn, call, None), errors.MEMBER_ID_REQUIRED)
        turn.answer(call, answer)
        return
    told = embedded.subscription(protocols[0][1])
    if told.owned and request.member_id not in group.members:
        # It was put out meanwhile, and others may have what it still works on.
        raise PeerError(errors.UNKNOWN_MEMBER_ID, f"{request.member_id!r} must own nothing to join")
    before = group.static_members.get(instance_id) if instance_id is not None else None
    if (
        before is not None
        and not request.member_id
        and (len(group.members) == 1 or migration.may_downgrade(turn, group, [before]))
    ):
        _take_back(turn, call, request, group, before)
        return
    member_id, known = _recognize(turn, call, request, group)
    member = _told(call, request, protocols, told, known)
    _enter(turn, call, group, member_id, known, member, _owned(told, turn.state.image))


def _begin_anew(turn: Turn, call: Call, request: Any, group: ConsumerState) -> None:
    """A consumer group without members is a classic one as soon as a classic member comes."""
    if request.member_id:
        raise PeerError(errors.UNKNOWN_MEMBER_ID, f"{group.group_id} has no members")
    if not request.protocol_type or not request.protocols:
        raise PeerError(
            errors.INCONSISTENT_GROUP_PROTOCOL, "a protocol type and a protocol are needed"
        )
    write_group_tombstones(turn, group)
    classic_join.join(turn, call, request)


def _take_back(turn: Turn, call: Call, request: Any, group: ConsumerState, before: str) -> None:
    """The last member of the consumer protocol comes back as a classic one."""
    if len(group.members) == 1:
        write_group_tombstones(turn, group)
    else:
        migration.downgrade(turn, group, [before])
    classic_join.join(turn, call, request)


def _check_join(turn: Turn, request: Any, group: ConsumerState, protocols: Protocols) -> None:
    group.check_room(turn, request.member_id)
    classic = [m for m in group.members.values() if m.classic is not None]
    supported = [dict(migration.protocols_of_classic(member)) for member in classic]
    common = [name for name, _ in protocols if all(name in one for one in supported)]
    if request.protocol_type != CONSUMER or not common:
        raise PeerError(
            errors.INCONSISTENT_GROUP_PROTOCOL,
            f"protocol type {request.protocol_type!r} with {[name for name, _ in protocols]} is not"
            f" what the classic members of {group.group_id} speak",
        )


def _new_id(turn: Turn, call: Call, instance_id: str | None) -> str:
    unique = UUID(bytes=turn.state.new_id(), version=4)
    member_id = f"{call.client_id if instance_id is None else instance_id}-{unique}"
    if not fits(member_id):
        raise PeerError(errors.INVALID_REQUEST, "the client id is too long for a member id")
    return member_id


def _recognize(
    turn: Turn, call: Call, request: Any, group: ConsumerState
) -> tuple[str, MemberMetadataValue | None]:
    """(member id, the member as it is known, None for a new one)."""
    instance_id = getattr(request, "group_instance_id", None)
    if instance_id is None:
        member_id = request.member_id or _new_id(turn, call, None)
        return member_id, group.members.get(member_id)
    if request.member_id:
        return request.member_id, group.check_member(request.member_id, instance_id)
    member_id = _new_id(turn, call, instance_id)
    before = group.static_members.get(instance_id)
    if before is None:
        return member_id, None
    return member_id, replace_static(turn, group, before, member_id)


def _told(
    call: Call,
    request: Any,
    protocols: Protocols,
    told: embedded.MemberSubscription,
    known: MemberMetadataValue | None,
) -> MemberMetadataValue:
    session = request.session_timeout // _MS
    timeout = getattr(request, "rebalance_timeout", request.session_timeout) // _MS
    instance_id = getattr(request, "group_instance_id", None)
    return MemberMetadataValue(
        instance_id=instance_id if known is None else known.instance_id,
        rack_id=told.rack,
        client_id=call.client_id,
        client_host=call.client_host,
        topic_names=tuple(sorted(dict.fromkeys(told.topics))),
        topic_regex=None,
        rebalance_timeout=timeout if timeout >= 0 else session,
        server_assignor=None,
        classic=migration.classic_member(session, protocols),
    )


def _owned(told: embedded.MemberSubscription, image: MetadataImage) -> Owned:
    known = image.topics_by_name
    return {
        known[name].topic_id: frozenset(partitions)
        for name, partitions in told.owned.items()
        if name in known
    }


def _enter(
    turn: Turn,
    call: Call,
    group: ConsumerState,
    member_id: str,
    known: MemberMetadataValue | None,
    member: MemberMetadataValue,
    owned: Owned,
) -> None:
    resubscribed = (
        known is None or member.topic_names != known.topic_names or known.topic_regex is not None
    )
    if member != known:
        turn.write_record(MemberMetadataKey(group=group.group_id, member=member_id), member)
    group.rights = call.rights
    if resubscribed or group.image_offset != turn.state.image.applied_offset:
        refresh(turn, group, bump=resubscribed)
    after = advance(turn, group, member_id, owned, resubscribed=resubscribed)
    due = group.due(member_id)
    due.join, due.sync = NEVER, turn.now_ms + member.rebalance_timeout
    turn.wake_at(group, due.sync)
    group.keep_alive(turn, member_id)
    answer = {
        **join_refused(call, member_id, errors.NONE),
        "generation_id": after.epoch,
        "protocol_type": CONSUMER,
        "protocol_name": migration.protocols_of_classic(member)[0][0],
    }
    turn.answer(call, answer)


# Members that are in ------------------------------------------------------------------------------


def sync(turn: Turn, call: Call, request: Any, group: ConsumerState) -> None:
    """Tell a member what it is to own now."""
    member_id = request.member_id
    member = _check_classic(request, group)
    protocols = migration.protocols_of_classic(member)
    asked = getattr(request, "protocol_type", None), getattr(request, "protocol_name", None)
    for mine, ours in zip(asked, (CONSUMER, protocols[0][0]), strict=True):
        if mine is not None and mine != ours:
            raise PeerError(
                errors.INCONSISTENT_GROUP_PROTOCOL, f"the group speaks {ours!r}, not {mine!r}"
            )
    current = group.current(member_id)
    if group.epoch > current.epoch and current.state != UNREVOKED:
        _await_join(turn, group, member_id)
        raise PeerError(errors.REBALANCE_IN_PROGRESS, f"the group's epoch is {group.epoch}")
    group.due(member_id).sync = NEVER
    group.keep_alive(turn, member_id)
    held = without_epochs(current.assigned)
    turn.answer(
        call,
        {
            "throttle_time": 0,
            "error_code": errors.NONE,
            "protocol_type": asked[0],
            "protocol_name": asked[1],
            "assignment": migration.assignment_bytes(held, protocols[0][1], turn.state.image),
        },
    )


def heartbeat(turn: Turn, call: Call, request: Any, group: ConsumerState) -> None:
    """Keep a member alive and tell it when joining again would bring it on."""
    _check_classic(request, group)
    group.keep_alive(turn, request.member_id)
    group.rights = call.rights
    if group.image_offset != turn.state.image.applied_offset:
        refresh(turn, group, bump=False)
    if _has_news(group, request.member_id):
        _await_join(turn, group, request.member_id)
        turn.answer(call, _REBALANCE)
    else:
        turn.answer(call, _NONE)


def _check_classic(request: Any, group: ConsumerState) -> MemberMetadataValue:
    member = group.check_member(request.member_id, getattr(request, "group_instance_id", None))
    if member.classic is None:
        raise PeerError(
            errors.UNKNOWN_MEMBER_ID, f"{request.member_id} does not speak the classic protocol"
        )
    epoch = group.current(request.member_id).epoch
    if request.generation_id != epoch:
        raise PeerError(errors.ILLEGAL_GENERATION, f"the member's generation is {epoch}")
    return member


def _has_news(group: ConsumerState, member_id: str) -> bool:
    current = group.current(member_id)
    if current.epoch < group.epoch or current.state == UNREVOKED:
        return True
    if current.state != UNRELEASED:
        return False
    return all(
        group.is_free(member_id, topic_id, partition)
        for topic_id, partitions in group.targets.get(member_id, {}).items()
        for partition in sorted(partitions)
    )


def _await_join(turn: Turn, group: ConsumerState, member_id: str) -> None:
    due = group.due(member_id)
    if due.join == NEVER:
        due.join = turn.now_ms + group.members[member_id].rebalance_timeout
        turn.wake_at(group, due.join)


def leave(turn: Turn, call: Call, request: Any, group: ConsumerState) -> None:
    """Classic members go, of their own will or removed by an administrator."""
    if call.version < 3:
        _check_leaving(group, request.member_id, None)
        fence(turn, group, [request.member_id])
        turn.answer(call, _NONE)
        return
    leaving: dict[str, None] = {}
    results = []
    for one in request.members:
        code = errors.NONE
        try:
            leaving[_check_leaving(group, one.member_id, one.group_instance_id)] = None
        except PeerError as refused:
            code = refused.code
        results.append(
            {
                "member_id": one.member_id,
                "group_instance_id": one.group_instance_id,
                "error_code": code,
            }
        )
    if leaving:
        fence(turn, group, list(leaving))
    turn.answer(call, {**_NONE, "members": results})


def _check_leaving(group: ConsumerState, member_id: str, instance_id: str | None) -> str:
    if not member_id and instance_id is not None:
        member_id = group.static_members.get(instance_id, "")
    group.check_member(member_id, instance_id)
    return member_id
