"""ConsumerGroupDescribe, API key 69, versions 0 and 1 (KIP-848). 1: how each member speaks
(KIP-1099). Each shard answers for its own groups.
"""

from typing import Any

from appliance.authorization.needs import DESCRIBE_GROUP, DESCRIBE_TOPIC
from appliance.authorization.operations import GROUP
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.coordinators.groups.consumer_group import ConsumerGroup
from appliance.coordinators.groups.consumer_state import without_epochs
from appliance.coordinators.groups.consumer_target import preferred_assignor
from appliance.coordinators.groups.group_descriptions import NOT_ASKED_FOR
from appliance.coordinators.groups.reconcile import Current, Target
from appliance.coordinators.groups.state import Group, Turn
from appliance.coordinators.runtime.call import Call
from appliance.metadata.image import MetadataImage

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1
_UNSEEN = "The group has described topic(s) that the client is not authorized to describe."


def describe(turn: Turn, call: Call, request: Any) -> None:
    """The consumer groups asked for, with their members."""
    groups = [
        _one(turn, call.rights, group_id, request.include_authorized_operations)
        for group_id in dict.fromkeys(request.group_ids)
        if turn.state.owns(group_id)
    ]
    turn.answer(call, {"throttle_time": 0, "groups": groups})


def _one(turn: Turn, rights: Rights, group_id: str, with_operations: bool) -> dict[str, Any]:
    if code := rights.refusal(DESCRIBE_GROUP, group_id):
        return _failed(group_id, code, None)
    group = turn.state.groups.get(group_id)
    if not group_id:
        return _failed(group_id, errors.INVALID_GROUP_ID, None)
    if not isinstance(group, ConsumerGroup):
        return _missing(group_id, group)
    if not rights.everything and (code := _unseen(turn, rights, group)):
        return _failed(group_id, code, _UNSEEN)
    operations = rights.operations(GROUP, group_id) if with_operations else NOT_ASKED_FOR
    return {**_described(turn, group), "authorized_operations": operations}


def _unseen(turn: Turn, rights: Rights, group: ConsumerGroup) -> int:
    """The error for a group whose members read what the caller may not see (KIP-848)."""
    names = set(group.topics())
    for member_id in group.members:
        held = {**_held(group.current(member_id)), **group.targets.get(member_id, {})}
        images = map(turn.state.image.topics_by_id.get, held)
        names.update(image.name for image in images if image is not None)
    codes = (rights.refusal(DESCRIBE_TOPIC, name) for name in sorted(names))
    return next(filter(None, codes), errors.NONE)


def describe_refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """Every group of this shard with the same error."""
    groups = [_failed(one, code, None) for one in request.group_ids if turn.state.owns(one)]
    return {"throttle_time": 0, "groups": groups}


def _missing(group_id: str, group: Group | None) -> dict[str, Any]:
    why = "not found" if group is None else "is not a consumer group"
    return _failed(group_id, errors.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")


def _failed(group_id: str, code: int, message: str | None) -> dict[str, Any]:
    return {
        "error_code": code,
        "error_message": message,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": (),
        "authorized_operations": NOT_ASKED_FOR,
    }


def _described(turn: Turn, group: ConsumerGroup) -> dict[str, Any]:
    image = turn.state.image
    return {
        "error_code": errors.NONE,
        "error_message": None,
        "group_id": group.group_id,
        "group_state": group.state_name,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": preferred_assignor(group, turn.state.settings.consumer_assignors),
        "members": [_described_member(group, one, image) for one in group.members],
    }


def _described_member(group: ConsumerGroup, member_id: str, image: MetadataImage) -> dict[str, Any]:
    member, current = group.members[member_id], group.current(member_id)
    return {
        "member_id": member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": current.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.topic_names,
        "subscribed_topic_regex": member.topic_regex or "",
        "assignment": _named(_held(current), image),
        "target_assignment": _named(group.targets.get(member_id, {}), image),
        "member_type": CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    }


def _held(current: Current) -> Target:
    """All that a member holds, also what it has yet to give up."""
    held = without_epochs(current.assigned)
    for topic_id, partitions in without_epochs(current.revoking).items():
        held[topic_id] = held.get(topic_id, frozenset()) | partitions
    return held


def _named(target: Target, image: MetadataImage) -> dict[str, Any]:
    """Topics that exist no more have no name to tell."""
    return {
        "topic_partitions": [
            {
                "topic_id": topic_id,
                "topic_name": image.topics_by_id[topic_id].name,
                "partitions": tuple(sorted(target[topic_id])),
            }
            for topic_id in sorted(target)
            if topic_id in image.topics_by_id
        ]
    }
