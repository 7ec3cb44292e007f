"""Putting members out of a group: those that are gone and still hold their partitions.

By LeaveGroup (API key 13, version 3 and later) to the coordinator, as Kafka's admin client does:
a static member by its instance id, any other by its member id. Somebody who is still alive joins
again at its next heartbeat.
"""

from collections.abc import Sequence
from typing import Final

from appliance.base import errors
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check, name_of_code
from console.model.groups.groups import Group, Member

_LEAVE_GROUP: Final = (13, 5)
_WHY: Final = "removed by an operator"


def named(group: Group, names: Sequence[str]) -> list[Member]:
    """The members of those instance ids, member ids or client ids. Raises Failure (USAGE) for a
    name that none or several have."""
    found: dict[str, Member] = {}
    for name in names:
        same = [one for one in group.members if name in (one.instance_id, one.member_id)]
        same = same or [one for one in group.members if name == one.client_id]
        if len(same) != 1:
            many = "several members" if same else "no member"
            raise usage(
                f"{group.name} has {many} called {name}",
                f"penstock group members {group.name} -o wide shows their ids",
            )
        found[same[0].member_id] = same[0]
    return list(found.values())


def remove(link: Link, group: Group, members: Sequence[Member]) -> dict[str, Failure | None]:
    """Put members out: member id → why it is still there, None where it is not. Raises Failure."""
    asked = {
        "group_id": group.name,
        "members": [
            {
                "member_id": "" if one.instance_id is not None else one.member_id,
                "group_instance_id": one.instance_id,
                "reason": _WHY,
            }
            for one in members
        ],
    }
    answer = ask_server(link, *_LEAVE_GROUP, asked, group.server)
    check(int(answer.error_code), None, group.name)
    by_id = {one.instance_id or one.member_id: one.member_id for one in members}
    told: dict[str, Failure | None] = {one.member_id: None for one in members}
    for one in answer.members:
        code = int(one.error_code)
        if code != errors.NONE:
            member = by_id.get(one.group_instance_id or one.member_id, one.member_id)
            told[member] = Failure(
                f"{member}: {name_of_code(code)}", name=name_of_code(code), kafka_code=code
            )
    return told
