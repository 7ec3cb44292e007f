"""OffsetFetch, API key 9, versions 1 to 10.

2: all topics when none are named, an error for the group. 5: leader epochs. 7: require_stable: a
partition for which an open transaction has an offset says UNSTABLE_OFFSET_COMMIT (KIP-447). 8:
several groups. 9: member id and epoch (KIP-848). 10: topic ids instead of names.
"""

from typing import Any, Final

from appliance.authorization.needs import DESCRIBE_GROUP, DESCRIBE_TOPIC
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups.records import OffsetCommitValue
from appliance.coordinators.groups.routing import GROUPS_SINCE
from appliance.coordinators.groups.state import Group, Turn
from appliance.coordinators.runtime.call import Call

TOPIC_IDS_SINCE: Final = 10
_NO_ID: Final = bytes(16)
_NOTHING: Final = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}


def fetch(turn: Turn, call: Call, request: Any) -> None:
    """Committed offsets of one group, or of those groups of the request that belong here."""
    if call.version < GROUPS_SINCE:
        stable = getattr(request, "require_stable", False)
        topics = _topics(turn, call, request.group_id, request.topics, stable)
        turn.answer(call, {"throttle_time": 0, "error_code": errors.NONE, "topics": topics})
        return
    state = turn.state
    groups = []
    for asked in request.groups:
        group = state.groups.get(asked.group_id)
        if group is not None or state.owns(asked.group_id):
            groups.append(_one_group(turn, call, asked, group, request.require_stable))
    turn.answer(call, {"throttle_time": 0, "groups": groups})


def _one_group(
    turn: Turn, call: Call, asked: Any, group: Group | None, stable: bool
) -> dict[str, Any]:
    group_id = asked.group_id
    if not call.rights.everything and (code := call.rights.refusal(DESCRIBE_GROUP, group_id)):
        return {"group_id": group_id, "topics": (), "error_code": code}
    if group is not None:
        try:
            group.check_fetch(asked.member_id, asked.member_epoch)
        except PeerError as refused:
            return {"group_id": group_id, "topics": (), "error_code": refused.code}
    topics = _topics(turn, call, group_id, asked.topics, stable)
    return {"group_id": group_id, "topics": topics, "error_code": errors.NONE}


def _topics(
    turn: Turn, call: Call, group_id: str, asked: Any, stable: bool
) -> list[dict[str, Any]]:
    if asked is None:
        found = _all_topics(turn, call, group_id)
    else:
        found = [_asked_topic(turn, call, group_id, topic) for topic in asked]
    if stable and group_id in turn.state.pending.by_group:
        _hide_unstable(turn, group_id, found)
    return found


def _hide_unstable(turn: Turn, group_id: str, topics: list[dict[str, Any]]) -> None:
    """Replaces each offset that an open transaction may change with UNSTABLE_OFFSET_COMMIT."""
    state = turn.state
    for told in topics:
        name = told.get("name")
        if name is None:
            topic = state.image.topics_by_id.get(told["topic_id"])
            name = "" if topic is None else topic.name
        rows = told["partitions"]
        for at, row in enumerate(rows):
            index = row["partition_index"]
            if row["error_code"] == errors.NONE and state.pending.holds(group_id, name, index):
                rows[at] = refused(index, errors.UNSTABLE_OFFSET_COMMIT)


def _all_topics(turn: Turn, call: Call, group_id: str) -> list[dict[str, Any]]:
    by_id = call.version >= TOPIC_IDS_SINCE
    known = turn.state.image.topics_by_name
    found: list[dict[str, Any]] = []
    limited = not call.rights.everything
    for name, partitions in turn.state.offsets.topics(group_id).items():
        if limited and not call.rights.may(DESCRIBE_TOPIC, name):
            continue
        topic = known.get(name)
        if topic is None:
            if by_id:
                continue  # there is no id by which to tell of it
            rows = [
                _row(index, value, None)
                for index, value in partitions.items()
                if value.topic_id == _NO_ID
            ]
        else:
            topic_id = topic.topic_id
            rows = [_row(index, value, topic_id) for index, value in partitions.items()]
        if not rows:
            continue
        if by_id:
            assert topic is not None
            found.append({"topic_id": topic.topic_id, "partitions": rows})
        else:
            found.append({"name": name, "partitions": rows})
    return found


def _asked_topic(turn: Turn, call: Call, group_id: str, asked: Any) -> dict[str, Any]:
    image = turn.state.image
    if call.version < TOPIC_IDS_SINCE:
        topic = image.topics_by_name.get(asked.name)
        named: dict[str, Any] = {"name": asked.name}
        name = asked.name
    else:
        topic_id = asked.topic_id
        topic = image.topics_by_id.get(topic_id)
        named = {"topic_id": topic_id}
        if topic is None:
            rows = [refused(index, errors.UNKNOWN_TOPIC_ID) for index in asked.partition_indexes]
            return {**named, "partitions": rows}
        name = topic.name
    if not call.rights.everything and (code := call.rights.refusal(DESCRIBE_TOPIC, name)):
        return {**named, "partitions": [refused(index, code) for index in asked.partition_indexes]}
    committed = turn.state.offsets.topics(group_id).get(name, {})
    current_id = None if topic is None else topic.topic_id
    rows = [_row(index, committed.get(index), current_id) for index in asked.partition_indexes]
    return {**named, "partitions": rows}


def _row(partition: int, value: OffsetCommitValue | None, topic_id: bytes | None) -> dict[str, Any]:
    """A commit for an earlier topic of the same name counts as none, and so does one for a deleted
    topic that may come back."""
    if value is None or (value.topic_id != topic_id and value.topic_id != _NO_ID):
        return refused(partition, errors.NONE)
    return {
        "partition_index": partition,
        "committed_offset": value.offset,
        "committed_leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "error_code": errors.NONE,
    }


def refused(partition: int, code: int) -> dict[str, Any]:
    """A partition without an offset."""
    return {"partition_index": partition, "error_code": code, **_NOTHING}
