"""SyncGroup (API key 14, versions 0 to 5), Heartbeat (12, 0 to 4), LeaveGroup (13, 0 to 5).

SyncGroup 5: protocol type and name are mandatory and must be the group's (KIP-559). LeaveGroup 3:
several members, static ones by instance id alone (an administrator's removal).
"""

from typing import Any, Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups.classic_answers import sync_refused, synced
from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.classic_rebalance import (
    after_loss,
    complete_if_all_joined,
    drop_member,
    note_rebalanced,
)
from appliance.coordinators.groups.classic_state import COMPLETING, PREPARING
from appliance.coordinators.groups.state import Turn, check_bytes
from appliance.coordinators.runtime.call import NEVER, Call

_ALIVE: Final = {"throttle_time": 0, "error_code": errors.NONE}
_REBALANCE: Final = {"throttle_time": 0, "error_code": errors.REBALANCE_IN_PROGRESS}
_MANDATORY_PROTOCOL_SINCE: Final = 5


def heartbeat(turn: Turn, call: Call, request: Any) -> None:
    """Keep a member alive and tell it of a rebalance."""
    group = turn.state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        _elsewhere(request, group).classic_heartbeat(turn, call, request)
        return
    member = group.check_member(request.member_id, getattr(request, "group_instance_id", None))
    if request.generation_id != group.generation:
        raise _illegal_generation(group)
    group.keep_alive(turn, member)
    turn.answer(call, _REBALANCE if group.state == PREPARING else _ALIVE)


def lacks_protocol(call: Call, request: Any) -> bool:
    """True if a SyncGroup omits the protocol type or name although its version requires both.
    Checked before anything else of the request.
    """
    return call.version >= _MANDATORY_PROTOCOL_SINCE and None in (
        request.protocol_type,
        request.protocol_name,
    )


def sync(turn: Turn, call: Call, request: Any) -> None:
    """Bring the leader's assignment, fetch one's own; parked until the leader has brought it."""
    group = turn.state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        _elsewhere(request, group).classic_sync(turn, call, request)
        return
    member = group.check_member(request.member_id, getattr(request, "group_instance_id", None))
    _check_sync(group, request)
    if group.state == PREPARING:
        turn.answer(call, sync_refused(errors.REBALANCE_IN_PROGRESS))
        return
    if member.member_id == group.leader and group.state == COMPLETING:
        _check_bytes(turn, group, request)
    group.pending_syncs.pop(member.member_id, None)
    if not group.pending_syncs:
        group.sync_deadline_ms = NEVER
    if group.state != COMPLETING:
        group.keep_alive(turn, member)
        turn.answer(call, synced(group, member.assignment))
        return
    earlier = group.awaiting_sync.get(member.member_id)
    if earlier is not None:
        turn.answer(earlier, sync_refused(errors.REBALANCE_IN_PROGRESS))
    group.awaiting_sync[member.member_id] = call
    if member.member_id == group.leader:
        _share_out(turn, group, {one.member_id: one.assignment for one in request.assignments})


def _check_sync(group: ClassicGroup, request: Any) -> None:
    if request.generation_id != group.generation:
        raise _illegal_generation(group)
    asked = getattr(request, "protocol_type", None), getattr(request, "protocol_name", None)
    for mine, ours in zip(asked, (group.protocol_type, group.protocol), strict=True):
        if mine is not None and ours is not None and mine != ours:
            raise PeerError(
                errors.INCONSISTENT_GROUP_PROTOCOL, f"the group speaks {ours!r}, not {mine!r}"
            )


def _check_bytes(turn: Turn, group: ClassicGroup, request: Any) -> None:
    before = sum(len(member.assignment) for member in group.members.values())
    more = sum(len(one.assignment) for one in request.assignments)
    check_bytes(turn, group.group_id, more - before)


def _share_out(turn: Turn, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """The leader's word is recorded; with that the group is Stable."""
    group.write_record(turn, assignments)
    note_rebalanced(turn, group)
    waiting, group.awaiting_sync = group.awaiting_sync, {}
    for member_id, call in waiting.items():
        member = group.members[member_id]
        turn.answer(call, synced(group, member.assignment))
        group.keep_alive(turn, member)


def leave(turn: Turn, call: Call, request: Any) -> None:
    """Members go, of their own will or removed by an administrator."""
    group = turn.state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        _elsewhere(request, group).classic_leave(turn, call, request)
        return
    before = len(group.members)
    if call.version < 3:
        _leave_one(turn, group, request.member_id, None)
        if len(group.members) < before:
            after_loss(turn, group)
        turn.answer(call, _ALIVE)
        return
    results = []
    for identity in request.members:
        code = errors.NONE
        try:
            _leave_one(turn, group, identity.member_id, identity.group_instance_id)
        except PeerError as refused:
            code = refused.code
        results.append(
            {
                "member_id": identity.member_id,
                "group_instance_id": identity.group_instance_id,
                "error_code": code,
            }
        )
    if len(group.members) < before:
        after_loss(turn, group)
    turn.answer(call, {"throttle_time": 0, "error_code": errors.NONE, "members": results})


def _leave_one(turn: Turn, group: ClassicGroup, member_id: str, instance_id: str | None) -> None:
    if not member_id and instance_id is not None:
        member_id = group.static_members.get(instance_id, "")
    if instance_id is None and group.forget_pending(member_id):
        complete_if_all_joined(turn, group)
        return
    drop_member(turn, group, group.check_member(member_id, instance_id))


def _elsewhere(request: Any, group: Any) -> Any:
    if group is None:
        raise PeerError(errors.UNKNOWN_MEMBER_ID, f"there is no group {request.group_id}")
    return group


def _illegal_generation(group: ClassicGroup) -> PeerError:
    return PeerError(errors.ILLEGAL_GENERATION, f"generation is {group.generation}")
