"""ConsumerGroupHeartbeat, API key 68, versions 0 and 1 (KIP-848).

One request does it all: epoch 0 joins, -1 leaves, -2 says that a static member will be back, any
other one tells that the member lives and what it owns, and hears what it is to own. Fields that are
null have not changed. Version 1: regular expressions, and member ids that clients make (KIP-1082).
"""

from base64 import urlsafe_b64encode
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from appliance.authorization.needs import DESCRIBE_TOPIC
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.bounds import REGEX
from appliance.coordinators.groups import migration, regex
from appliance.coordinators.groups.consumer_leave import fence
from appliance.coordinators.groups.consumer_records import (
    CurrentKey,
    MemberMetadataKey,
    MemberMetadataValue,
    TargetKey,
)
from appliance.coordinators.groups.consumer_state import ConsumerState, bytes_of
from appliance.coordinators.groups.consumer_target import (
    advance,
    refresh,
    watch_revocation,
    write_member_tombstones,
)
from appliance.coordinators.groups.reconcile import (
    STABLE,
    STATIC_LEFT,
    Current,
    Held,
    Owned,
    current_value,
    target_value,
)
from appliance.coordinators.groups.state import Turn, check_bytes, check_room, refuse
from appliance.coordinators.runtime.call import Call

JOINS: Final = 0
OWN_ID_SINCE: Final = 1
FEATURE: Final = "group.version"
_MS: Final = timedelta(milliseconds=1)


def heartbeat(turn: Turn, call: Call, request: Any) -> None:
    """Let a member in, out, or on towards its target."""
    if not call.rights.everything and (code := _unseen(call, request)):
        turn.answer(call, refused(code))
        return
    try:
        _check(turn, call, request)
        if request.member_epoch < JOINS:
            values = _leave(turn, request)
        else:
            if request.member_epoch == JOINS:
                check_room(turn, request.group_id)
            _check_bytes(turn, call, request)
            values = _beat(turn, call, request)
    except PeerError as no:
        values = refused(no.code, no.message)
    turn.answer(call, values)


def refused(code: int, message: str | None = None) -> dict[str, Any]:
    """An answer that carries an error only."""
    return {
        "throttle_time": 0,
        "error_code": code,
        "error_message": message,
        "member_id": None,
        "member_epoch": 0,
        "heartbeat_interval": 0,
        "assignment": None,
    }


# What a request may say ---------------------------------------------------------------------------


def _check(turn: Turn, call: Call, request: Any) -> None:
    if turn.state.image.features.get(FEATURE, 0) < 1 or not turn.state.settings.consumer_protocol:
        raise PeerError(
            errors.UNSUPPORTED_VERSION,
            f"the consumer protocol needs the feature {FEATURE}=1 and `consumer` in "
            f"group.coordinator.rebalance.protocols",
        )
    epoch = request.member_epoch
    needs_id = epoch != JOINS or call.version >= OWN_ID_SINCE
    _refuse_if(needs_id and not request.member_id, "MemberId can't be empty.")
    for name, field in (
        ("GroupId", "group_id"),
        ("InstanceId", "instance_id"),
        ("RackId", "rack_id"),
    ):
        _refuse_if(getattr(request, field) == "", f"{name} can't be empty.")
    _refuse_if(
        epoch < STATIC_LEFT,
        f"MemberEpoch is invalid. It is {epoch}, and the least one is {STATIC_LEFT}.",
    )
    _refuse_if(
        epoch == STATIC_LEFT and request.instance_id is None,
        "InstanceId can't be null. A static member that leaves for a while has one.",
    )
    if epoch == JOINS:
        _check_first(request)
    expression = getattr(request, "subscribed_topic_regex", None)
    if expression:
        _check_expression(turn, request.group_id, expression)
    known = turn.state.settings.consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in known:
        raise PeerError(
            errors.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(known)}.",
        )


def _check_expression(turn: Turn, group_id: str, expression: str) -> None:
    names, most = turn.state.image.topics_by_name, turn.state.settings.regex_max_steps
    if regex.count_work(expression, names) > most:
        refuse(turn, REGEX, group_id, "a regular expression takes too much work")
    regex.check_work(expression, names, most)


def _check_bytes(turn: Turn, call: Call, request: Any) -> None:
    """A member may subscribe to more than before, as long as there is room."""
    names = request.subscribed_topic_names or ()
    if request.member_epoch != JOINS and not names:
        return
    group = turn.state.groups.get(request.group_id)
    known = group.members.get(request.member_id) if isinstance(group, ConsumerState) else None
    check_bytes(turn, request.group_id, bytes_of(_told(call, request, known)) - bytes_of(known))


def _unseen(call: Call, request: Any) -> int:
    """The error for who subscribes by name to a topic that it may not see, be there one or not."""
    codes = (
        call.rights.refusal(DESCRIBE_TOPIC, name) for name in request.subscribed_topic_names or ()
    )
    return next(filter(None, codes), errors.NONE)


def _check_first(request: Any) -> None:
    _refuse_if(
        request.rebalance_timeout // _MS == -1,
        "RebalanceTimeoutMs must be provided in first request.",
    )
    _refuse_if(
        request.topic_partitions is None or len(request.topic_partitions) > 0,
        "TopicPartitions must be empty when (re-)joining.",
    )
    _refuse_if(
        request.subscribed_topic_names is None
        and getattr(request, "subscribed_topic_regex", None) is None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def _refuse_if(wrong: bool, message: str) -> None:
    if wrong:
        raise PeerError(errors.INVALID_REQUEST, message)


# A member that is there or comes ------------------------------------------------------------------


def _beat(turn: Turn, call: Call, request: Any) -> dict[str, Any]:
    found = turn.state.groups.get(request.group_id)
    group = found if isinstance(found, ConsumerState) else migration.enter(turn, request, found)
    member_id = request.member_id or _new_id(turn)
    owned = _owned(request)
    known = _recognize(turn, group, request, member_id, owned)
    told = _told(call, request, known)
    subscription = ((), None) if known is None else (known.topic_names, known.topic_regex)
    resubscribed = subscription != (told.topic_names, told.topic_regex)
    if told != known:
        turn.write_record(MemberMetadataKey(group=request.group_id, member=member_id), told)
    joined = turn.state.groups[request.group_id]
    assert isinstance(joined, ConsumerState), "the member's record made the group"
    joined.rights = call.rights
    if resubscribed or joined.image_offset != turn.state.image.applied_offset:
        refresh(turn, joined, bump=resubscribed)
    before = joined.current(member_id)
    after = advance(turn, joined, member_id, owned, resubscribed=resubscribed)
    joined.keep_alive(turn, member_id)
    shown = _is_full(request) or not _same_places(before.assigned, after.assigned)
    return {
        "throttle_time": 0,
        "error_code": errors.NONE,
        "error_message": None,
        "member_id": member_id,
        "member_epoch": after.epoch,
        "heartbeat_interval": joined.heartbeat_interval_ms(turn),
        "assignment": _assignment(after.assigned) if shown else None,
    }


def _new_id(turn: Turn) -> str:
    """As Kafka's own: 16 bytes in base64."""
    return urlsafe_b64encode(turn.state.new_id()).decode().rstrip("=")


def _owned(request: Any) -> Owned:
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for one in request.topic_partitions:
        topic_id = bytes(16) if one.topic_id is None else one.topic_id.bytes
        owned[topic_id] = owned.get(topic_id, frozenset()) | frozenset(one.partitions)
    return owned


def _recognize(
    turn: Turn, group: ConsumerState | None, request: Any, member_id: str, owned: Owned
) -> MemberMetadataValue | None:
    """The member as it is known, None for a new one."""
    if group is None:
        return None
    group.check_room(turn, member_id)
    joins = request.member_epoch == JOINS
    if request.instance_id is not None and joins:
        return _recognize_static(turn, group, request.instance_id, member_id)
    if joins:
        return group.members.get(member_id)
    member = group.check_member(member_id, request.instance_id)
    _check_epoch(group.current(member_id), request.member_epoch, owned)
    return member


def _check_epoch(current: Current, epoch: int, owned: Owned) -> None:
    if epoch == current.epoch:
        return
    if epoch < current.epoch and epoch == current.previous_epoch and owned is not None:
        # The answer with the newer epoch may have been lost.
        held = current.assigned
        if all(topic in held and own <= held[topic].keys() for topic, own in owned.items()):
            return
    kind = "greater" if epoch > current.epoch else "smaller"
    raise PeerError(
        errors.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {kind} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({current.epoch}). The member must abandon all its partitions and "
        f"rejoin.",
    )


def _recognize_static(
    turn: Turn, group: ConsumerState, instance_id: str, member_id: str
) -> MemberMetadataValue | None:
    """A static member that comes back under a new id takes over what the old one had."""
    old_id = group.static_members.get(instance_id)
    if old_id is None or old_id == member_id:
        return group.members.get(member_id)
    if group.members[old_id].classic is None and group.current(old_id).epoch != STATIC_LEFT:
        raise PeerError(
            errors.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {old_id} member.",
        )
    return replace_static(turn, group, old_id, member_id)


def replace_static(
    turn: Turn, group: ConsumerState, old_id: str, member_id: str
) -> MemberMetadataValue:
    """Give all of a static member to its successor, who stands in epoch 0."""
    member, target = group.members[old_id], group.targets.get(old_id, {})
    current = replace(group.current(old_id), epoch=0, previous_epoch=0)
    write_member_tombstones(turn, group, old_id)
    turn.write_record(MemberMetadataKey(group=group.group_id, member=member_id), member)
    turn.write_record(TargetKey(group=group.group_id, member=member_id), target_value(target))
    turn.write_record(CurrentKey(group=group.group_id, member=member_id), current_value(current))
    return member


def _told(call: Call, request: Any, known: MemberMetadataValue | None) -> MemberMetadataValue:
    """The member as it is from now on: what it did not say is as before."""
    names, timeout = request.subscribed_topic_names, request.rebalance_timeout // _MS
    expression = getattr(request, "subscribed_topic_regex", None)
    if (
        known is not None
        and known.classic is None
        and names is expression is request.rack_id is request.server_assignor is None
        and timeout in (-1, known.rebalance_timeout)
        and (known.client_id, known.client_host) == (call.client_id, call.client_host)
    ):
        return known
    before = known or MemberMetadataValue(
        instance_id=request.instance_id,
        rack_id=None,
        client_id="",
        client_host="",
        topic_names=(),
        topic_regex=None,
        server_assignor=None,
    )
    said = request.server_assignor
    return replace(
        before,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        topic_names=before.topic_names if names is None else tuple(sorted(dict.fromkeys(names))),
        topic_regex=before.topic_regex if expression is None else expression or None,
        rebalance_timeout=before.rebalance_timeout if timeout == -1 else timeout,
        server_assignor=before.server_assignor if said is None else said,
        classic=None,
    )


def _is_full(request: Any) -> bool:
    """True for a full heartbeat: the member joins, or repeats all of its fields after a lost
    answer.
    """
    if request.member_epoch == JOINS:
        return True
    subscribed = (
        request.subscribed_topic_names is not None
        or getattr(request, "subscribed_topic_regex", None) is not None
    )
    told_timeout = request.rebalance_timeout // _MS != -1
    return told_timeout and subscribed and request.topic_partitions is not None


def _same_places(one: Held, other: Held) -> bool:
    return one is other or (
        one.keys() == other.keys()
        and all(one[topic].keys() == other[topic].keys() for topic in one)
    )


def _assignment(held: Held) -> dict[str, Any]:
    return {
        "topic_partitions": [
            {"topic_id": topic_id, "partitions": tuple(sorted(held[topic_id]))}
            for topic_id in sorted(held)
        ]
    }


# A member that goes -------------------------------------------------------------------------------


def _leave(turn: Turn, request: Any) -> dict[str, Any]:
    found = turn.state.groups.get(request.group_id)
    if not isinstance(found, ConsumerState):
        why = "not found" if found is None else "is not a consumer group"
        raise PeerError(errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {why}.")
    group = found
    group.check_member(request.member_id, request.instance_id)
    if request.member_epoch == STATIC_LEFT:
        current = group.current(request.member_id)
        away = Current(STATIC_LEFT, current.previous_epoch, STABLE, current.assigned, {})
        key = CurrentKey(group=group.group_id, member=request.member_id)
        turn.write_record(key, current_value(away))
        watch_revocation(turn, group, request.member_id)
    else:
        fence(turn, group, [request.member_id])
    return {
        **refused(errors.NONE),
        "member_id": request.member_id,
        "member_epoch": request.member_epoch,
    }
