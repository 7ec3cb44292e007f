"""DescribeGroups (API key 15, versions 0 to 6), ListGroups (16, 0 to 5), DeleteGroups (42, 0 to 2).

DescribeGroups 3: authorized operations. 4: instance ids. 6: GROUP_ID_NOT_FOUND for a group that is
not there, instead of one in state Dead (KIP-1043). ListGroups 4: filter by state (KIP-518). 5: by
type (KIP-848). Each shard answers for its own groups.
"""

from typing import Any, Final

from appliance.authorization.needs import DELETE_GROUP, DESCRIBE_GROUP, LIST_GROUP
from appliance.authorization.operations import GROUP
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.classic_state import STABLE
from appliance.coordinators.groups.members import Member
from appliance.coordinators.groups.offsets import delete_all
from appliance.coordinators.groups.state import Group, Turn
from appliance.coordinators.runtime.call import Call

NOT_ASKED_FOR: Final = -2147483648
_NOT_FOUND_SINCE: Final = 6


def describe(turn: Turn, call: Call, request: Any) -> None:
    """The classic groups asked for, with their members."""
    wanted = getattr(request, "include_authorized_operations", False)
    groups = []
    for group_id in dict.fromkeys(request.groups):
        if turn.state.owns(group_id):
            code = call.rights.refusal(DESCRIBE_GROUP, group_id)
            if code:
                groups.append(_dead(group_id, call.version, code))
                continue
            described = _one(turn.state.groups.get(group_id), group_id, call.version)
            if wanted and described["error_code"] == errors.NONE:
                described["authorized_operations"] = call.rights.operations(GROUP, group_id)
            groups.append(described)
    turn.answer(call, {"throttle_time": 0, "groups": groups})


def _one(group: Group | None, group_id: str, version: int) -> dict[str, Any]:
    if isinstance(group, ClassicGroup):
        return _described(group)
    why = "not found" if group is None else "is not a classic group"
    return _dead(group_id, version, errors.NONE, why)


def _described(group: ClassicGroup) -> dict[str, Any]:
    stable = group.state == STABLE
    return {
        "error_code": errors.NONE,
        "error_message": None,
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol or "") if stable else "",
        "members": [_described_member(m, group, stable) for m in group.members.values()],
        "authorized_operations": NOT_ASKED_FOR,
    }


def _described_member(member: Member, group: ClassicGroup, stable: bool) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": member.metadata(group.protocol) if stable else b"",
        "member_assignment": member.assignment,
    }


def _dead(group_id: str, version: int, code: int, why: str = "not found") -> dict[str, Any]:
    missing = code == errors.NONE and version >= _NOT_FOUND_SINCE
    return {
        "error_code": errors.GROUP_ID_NOT_FOUND if missing else code,
        "error_message": f"Group {group_id} {why}." if missing else None,
        "group_id": group_id,
        "group_state": "Dead" if code == errors.NONE else "",
        "protocol_type": "",
        "protocol_data": "",
        "members": (),
        "authorized_operations": NOT_ASKED_FOR,
    }


def describe_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """Every group of this shard with the same error."""
    groups = [_dead(one, call.version, code) for one in request.groups if turn.state.owns(one)]
    return {"throttle_time": 0, "groups": groups}


def list_groups(turn: Turn, call: Call, request: Any) -> None:
    """Groups of this shard that the caller may see, filtered by state and type, both without regard
    to case."""
    states = {one.lower(): None for one in getattr(request, "states_filter", ())}
    kinds = {one.lower(): None for one in getattr(request, "types_filter", ())}
    rights = call.rights
    groups = [
        {
            "group_id": group.group_id,
            "protocol_type": group.shown_protocol_type,
            "group_state": group.state_name,
            "group_type": group.KIND,
        }
        for group in turn.state.groups.values()
        if (not states or group.state_name.lower() in states)
        and (not kinds or group.KIND in kinds)
        and rights.may(LIST_GROUP, group.group_id)
    ]
    turn.answer(call, {"throttle_time": 0, "error_code": errors.NONE, "groups": groups})


def delete_groups(turn: Turn, call: Call, request: Any) -> None:
    """Remove empty groups and their offsets."""
    results = [
        {"group_id": group_id, "error_code": _delete_group(turn, call, group_id)}
        for group_id in request.groups_names
        if turn.state.owns(group_id)
    ]
    turn.answer(call, {"throttle_time": 0, "results": results})


def _delete_group(turn: Turn, call: Call, group_id: str) -> int:
    if code := call.rights.refusal(DELETE_GROUP, group_id):
        return code
    group = turn.state.groups.get(group_id)
    if group is None:
        return errors.GROUP_ID_NOT_FOUND
    try:
        group.check_delete()
    except PeerError as refused:
        return refused.code
    delete_all(turn, group_id)
    group.write_tombstones(turn)
    return errors.NONE
