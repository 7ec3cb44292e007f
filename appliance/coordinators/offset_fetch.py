"""OffsetFetch, API key 9, versions 1 to 10.

2: all topics when none are named, an error for the group. 5: leader epochs. 7: require_stable (no
offset of an open transaction is known here, so all are stable). 8: several groups. 9: member id and
epoch (KIP-848). 10: topic ids instead of names.
"""

from typing import Any, Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.call import Call
from appliance.coordinators.records import OffsetCommitValue
from appliance.coordinators.turn import Turn

GROUPS_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10
_NOTHING: Final = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}


def fetch(turn: Turn, call: Call, request: Any) -> None:
    """Committed offsets of one group, or of those groups of the request that belong here."""
    if call.version < GROUPS_SINCE:
        topics = _topics(turn, call, request.group_id, request.topics)
        turn.answer(call, {"throttle_time": 0, "error_code": errors.NONE, "topics": topics})
        return
    groups = [
        _one_group(turn, call, asked) for asked in request.groups if turn.shard.owns(asked.group_id)
    ]
    turn.answer(call, {"throttle_time": 0, "groups": groups})


def _one_group(turn: Turn, call: Call, asked: Any) -> dict[str, Any]:
    group = turn.shard.groups.get(asked.group_id)
    try:
        if group is not None:
            group.check_fetch(getattr(asked, "member_id", None), getattr(asked, "member_epoch", -1))
    except PeerError as refused:
        return {"group_id": asked.group_id, "topics": (), "error_code": refused.code}
    topics = _topics(turn, call, asked.group_id, asked.topics)
    return {"group_id": asked.group_id, "topics": topics, "error_code": errors.NONE}


def _topics(turn: Turn, call: Call, group_id: str, asked: Any) -> list[dict[str, Any]]:
    if asked is None:
        return _all_topics(turn, call, group_id)
    return [_asked_topic(turn, call, group_id, topic) for topic in asked]


def _all_topics(turn: Turn, call: Call, group_id: str) -> list[dict[str, Any]]:
    found = []
    for name, partitions in turn.shard.offsets.topics(group_id).items():
        topic = turn.shard.image.topics_by_name.get(name)
        named: dict[str, Any] = {"name": name}
        if call.version >= TOPIC_IDS_SINCE:
            if topic is None:
                continue  # there is no id by which to tell of it
            named = {"topic_id": topic.topic_id}
        topic_id = None if topic is None else topic.topic_id
        rows = [
            _row(index, value, topic_id)
            for index, value in partitions.items()
            if topic is not None or value.topic_id == bytes(16)
        ]
        if not rows:
            continue
        found.append({**named, "partitions": rows})
    return found


def _asked_topic(turn: Turn, call: Call, group_id: str, asked: Any) -> dict[str, Any]:
    image = turn.shard.image
    if call.version < TOPIC_IDS_SINCE:
        topic = image.topics_by_name.get(asked.name)
        named: dict[str, Any] = {"name": asked.name}
        name = asked.name
    else:
        topic_id = bytes(16) if asked.topic_id is None else asked.topic_id.bytes
        topic = image.topics_by_id.get(topic_id)
        named = {"topic_id": topic_id}
        if topic is None:
            rows = [refused(index, errors.UNKNOWN_TOPIC_ID) for index in asked.partition_indexes]
            return {**named, "partitions": rows}
        name = topic.name
    committed = turn.shard.offsets.topics(group_id).get(name, {})
    current_id = None if topic is None else topic.topic_id
    rows = [_row(index, committed.get(index), current_id) for index in asked.partition_indexes]
    return {**named, "partitions": rows}


def _row(partition: int, value: OffsetCommitValue | None, topic_id: bytes | None) -> dict[str, Any]:
    """A commit for an earlier topic of the same name counts as none, and so does one for a deleted
    topic that may come back."""
    if value is None or value.topic_id not in (topic_id, bytes(16)):
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
