"""The answers to JoinGroup and SyncGroup, which come from several places of a rebalance."""

from collections.abc import Sequence
from typing import Any

from appliance.base import errors
from appliance.coordinators.groups.classic_state import ClassicState
from appliance.coordinators.runtime.call import Call

NULL_PROTOCOL_SINCE = 7  # JoinGroup: older versions have no null for it


def join_refused(call: Call, member_id: str, code: int) -> dict[str, Any]:
    """A JoinGroup answer that carries an error only."""
    return {
        "throttle_time": 0,
        "error_code": code,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": None if call.version >= NULL_PROTOCOL_SINCE else "",
        "leader": "",
        "skip_assignment": False,
        "member_id": member_id,
        "members": (),
    }


def joined(
    group: ClassicState,
    member_id: str,
    *,
    leader: str | None = None,
    members: Sequence[dict[str, Any]] = (),
    skip_assignment: bool = False,
) -> dict[str, Any]:
    """Where the member stands in the group's generation. leader: when another is to be named."""
    return {
        "throttle_time": 0,
        "error_code": errors.NONE,
        "generation_id": group.generation,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol or "",
        "leader": leader or group.leader or "",
        "skip_assignment": skip_assignment,
        "member_id": member_id,
        "members": members,
    }


def roster(group: ClassicState) -> list[dict[str, Any]]:
    """All members with their subscriptions, for the leader."""
    return [
        {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "metadata": member.metadata(group.protocol),
        }
        for member in group.members.values()
    ]


def synced(group: ClassicState, assignment: bytes) -> dict[str, Any]:
    """A member's assignment."""
    return {
        "throttle_time": 0,
        "error_code": errors.NONE,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "assignment": assignment,
    }


def sync_refused(code: int) -> dict[str, Any]:
    """A SyncGroup answer that carries an error only."""
    return {
        "throttle_time": 0,
        "error_code": code,
        "protocol_type": None,
        "protocol_name": None,
        "assignment": b"",
    }
