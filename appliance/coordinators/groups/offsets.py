"""OffsetCommit (API key 8, versions 2 to 10) and OffsetDelete (47, version 0).

OffsetCommit 2 to 4: a retention time may be given, it is kept as the offset's own end. 6: leader
epoch. 7: group instance id. 9: the generation may be a member epoch (KIP-848). 10: topic ids
instead of names (KIP-848, KIP-516).
"""

from datetime import timedelta
from typing import Any, Final

from appliance.authorization.needs import READ_TOPIC
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.bounds import OFFSET_METADATA, setting_of
from appliance.coordinators.groups.offset_records import key_bytes, value_bytes
from appliance.coordinators.groups.records import OffsetCommitKey, OffsetCommitValue
from appliance.coordinators.groups.state import Turn, check_room
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.records import fits
from appliance.metadata.image import TopicImage

WITH_EXPIRY_VERSION: Final = 1
TOPIC_IDS_SINCE: Final = 10
_NO_RETENTION_SINCE: Final = 5
_GROUP_NOT_FOUND_SINCE: Final = 9
_MS: Final = timedelta(milliseconds=1)


def commit(turn: Turn, call: Call, request: Any) -> None:
    """Keep offsets for a member, or for anybody while the group has no members."""
    group = turn.state.groups.get(request.group_id)
    if group is not None:
        group.check_commit(turn, call, request)
    elif request.generation_id_or_member_epoch >= 0:
        known = call.version >= _GROUP_NOT_FOUND_SINCE
        code = errors.GROUP_ID_NOT_FOUND if known else errors.ILLEGAL_GENERATION
        raise PeerError(code, f"there is no group {request.group_id}")
    else:
        check_room(turn, request.group_id)
    expires = -1 if call.version >= _NO_RETENTION_SINCE else _expires_ms(turn, request)
    topics = []
    for asked in request.topics:
        topic, named, code = _find(turn, call, asked)
        if not call.rights.everything:
            code = _refused(call, asked, topic) or code
        partitions = []
        for one in asked.partitions:
            found = code or _commit_one(turn, request.group_id, topic, one, expires)
            partitions.append({"partition_index": one.partition_index, "error_code": found})
        topics.append({**named, "partitions": partitions})
    turn.answer(call, {"throttle_time": 0, "topics": topics})


def _expires_ms(turn: Turn, request: Any) -> int:
    retention = getattr(request, "retention_time", -_MS) // _MS
    return -1 if retention == -1 else turn.wall_ms + int(retention)


def _find(turn: Turn, call: Call, asked: Any) -> tuple[TopicImage | None, dict[str, Any], int]:
    """(the topic, how the answer names it, error code)."""
    image = turn.state.image
    if call.version < TOPIC_IDS_SINCE:
        topic = image.topics_by_name.get(asked.name)
        code = errors.UNKNOWN_TOPIC_OR_PARTITION if topic is None else errors.NONE
        return topic, {"name": asked.name}, code
    topic_id = asked.topic_id
    topic = image.topics_by_id.get(topic_id)
    code = errors.UNKNOWN_TOPIC_ID if topic is None else errors.NONE
    return topic, {"topic_id": topic_id}, code


def _refused(call: Call, asked: Any, topic: TopicImage | None) -> int:
    """The error code of a topic without READ, by name even if it does not exist. An unknown topic
    id has none, because it names no topic.
    """
    if call.version < TOPIC_IDS_SINCE:
        return call.rights.refusal(READ_TOPIC, asked.name)
    return errors.NONE if topic is None else call.rights.refusal(READ_TOPIC, topic.name)


def _commit_one(
    turn: Turn, group_id: str, topic: TopicImage | None, asked: Any, expires_ms: int
) -> int:
    assert topic is not None
    if not 0 <= asked.partition_index < len(topic.partitions):
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    metadata = asked.committed_metadata or ""
    if metadata and (code := wrong_metadata(turn, metadata)):
        return code
    key = OffsetCommitKey(group=group_id, topic=topic.name, partition=asked.partition_index)
    if expires_ms == -1:
        value = lasting(asked, topic, metadata, turn.wall_ms)
        turn.write_encoded(key, value, key_bytes(key), value_bytes(value))
    else:
        ending = _ending(asked, metadata, turn.wall_ms, expires_ms)
        turn.write_record(key, ending, WITH_EXPIRY_VERSION)
    return errors.NONE


def wrong_metadata(turn: Turn, metadata: str) -> int:
    """The error code of metadata that is too long."""
    limit = turn.state.settings.offset_metadata_max_bytes
    if len(metadata) <= limit and fits(metadata):
        return errors.NONE
    why = f"metadata of {len(metadata)} characters: {setting_of(OFFSET_METADATA)}"
    told = {"bound": OFFSET_METADATA, "why": why}
    turn.add_note("bound-reached", OFFSET_METADATA, told, is_loss=True)
    return errors.OFFSET_METADATA_TOO_LARGE


def lasting(asked: Any, topic: TopicImage, metadata: str, now_ms: int) -> OffsetCommitValue:
    """The record of a commit that has no expiry of its own."""
    return OffsetCommitValue(
        offset=asked.committed_offset,
        leader_epoch=getattr(asked, "committed_leader_epoch", -1),
        metadata=metadata,
        commit_timestamp=now_ms,
        topic_id=topic.topic_id,
    )


def _ending(asked: Any, metadata: str, now_ms: int, expires_ms: int) -> OffsetCommitValue:
    """The only version with an end has neither epoch nor id: what is applied is what is written."""
    return OffsetCommitValue(
        offset=asked.committed_offset,
        metadata=metadata,
        commit_timestamp=now_ms,
        expire_timestamp=expires_ms,
    )


def delete(turn: Turn, call: Call, request: Any) -> None:
    """Forget offsets of topics that no member is subscribed to."""
    if not request.group_id:
        raise PeerError(errors.INVALID_GROUP_ID, "group_id must not be empty")
    group = turn.state.groups.get(request.group_id)
    if group is None:
        raise PeerError(errors.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id}")
    group.check_offset_delete()
    topics = []
    for asked in request.topics:
        refused = call.rights.refusal(READ_TOPIC, asked.name)
        in_use = group.is_subscribed_to(asked.name)
        partitions = []
        for one in asked.partitions:
            code = refused or errors.GROUP_SUBSCRIBED_TO_TOPIC
            if not in_use and not refused:
                code = _delete_one(turn, request.group_id, asked.name, one.partition_index)
            partitions.append({"partition_index": one.partition_index, "error_code": code})
        if partitions:
            topics.append({"name": asked.name, "partitions": partitions})
    turn.answer(call, {"error_code": errors.NONE, "throttle_time": 0, "topics": topics})


def _delete_one(turn: Turn, group_id: str, name: str, partition: int) -> int:
    if turn.state.image.partition(name, partition) is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    state = turn.state
    committed = state.offsets.find_offset(group_id, name, partition) is not None
    if committed or state.pending.holds(group_id, name, partition):
        write_tombstone(turn, group_id, name, partition)
    return errors.NONE


def write_tombstone(turn: Turn, group_id: str, topic: str, partition: int) -> None:
    """Forget one offset."""
    turn.write_record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def delete_all(turn: Turn, group_id: str) -> None:
    """Forget every offset of a group, those of open transactions too."""
    for topic, partition, _ in turn.state.offsets.of_group(group_id):
        write_tombstone(turn, group_id, topic, partition)
    for topic, partition in list(turn.state.pending.by_group.get(group_id, ())):
        write_tombstone(turn, group_id, topic, partition)


def delete_of_topic(turn: Turn, name: str, topic_id: bytes) -> None:
    """Forget what every group committed for a topic that is gone.

    A commit that names another id belongs to a topic of the same name created since.
    """
    for group_id in list(turn.state.offsets.by_group):
        committed = turn.state.offsets.topics(group_id).get(name, {})
        for partition, value in list(committed.items()):
            if value.topic_id in (topic_id, bytes(16)):
                write_tombstone(turn, group_id, name, partition)
    for (group_id, _, partition), pending in turn.state.pending.of_topic(name):
        if pending is None or pending.topic_id in (topic_id, bytes(16)):
            write_tombstone(turn, group_id, name, partition)
