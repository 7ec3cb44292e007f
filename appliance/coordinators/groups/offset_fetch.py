"""OffsetFetch, API key 9, versions 1 to 10.

2: all topics when none are named, an error for the group. 5: leader epochs. 7: require_stable: a
partition for which an open transaction has an offset says UNSTABLE_OFFSET_COMMIT (KIP-447). 8:
several groups. 9: member id and epoch (KIP-848). 10: topic ids instead of names.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from appliance.authorization.needs import DESCRIBE_GROUP, DESCRIBE_TOPIC
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups.records import OffsetCommitValue
from appliance.coordinators.groups.routing import GROUPS_SINCE
from appliance.coordinators.groups.state import GroupsState, Turn
from appliance.coordinators.runtime.call import Call

TOPIC_IDS_SINCE: Final = 10
ROWS: Final = 256
"""Rows between two steps of a long request, some hundred µs."""
_NO_ID: Final = bytes(16)
_NOTHING: Final = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}


def fetch(turn: Turn, call: Call, request: Any) -> None:
    """Committed offsets of one group, or of those groups of the request that belong here. A group
    whose offsets are all asked for is answered once, however often it is named."""
    prepared = call.prepared
    if prepared is not None and prepared[0] is turn.state:
        read = prepared[1]
    else:
        read = _read_at_once(turn.state, call, request)
    if call.version < GROUPS_SINCE:
        (topics,) = read
        turn.answer(call, {"throttle_time": 0, "error_code": errors.NONE, "topics": topics})
        return
    groups = [_answered(turn.state, call, *one) for one in read]
    turn.answer(call, {"throttle_time": 0, "groups": groups})


def prepare(
    state: GroupsState, call: Call, request: Any
) -> Generator[None, None, tuple[GroupsState, list[Any]]]:
    """Steps that read the offsets for `fetch`, from the state that they give with them."""
    return state, (yield from _read(state, call, request))


def _read(state: GroupsState, call: Call, request: Any) -> Generator[None, None, list[Any]]:
    """Steps that give the topics of one group, or (request, topics) of each of several that belong
    here."""
    if call.version < GROUPS_SINCE:
        stable = getattr(request, "require_stable", False)
        return [(yield from _topics(state, call, request.group_id, request.topics, stable))]
    found: list[Any] = []
    whole: set[str] = set()
    for number, asked in enumerate(request.groups, 1):
        group_id = asked.group_id
        if asked.topics is None:
            if group_id in whole:
                continue
            whole.add(group_id)
        if group_id in state.groups or state.owns(group_id):
            topics: list[dict[str, Any]] = []
            if _refusal(state, call, asked) == errors.NONE:
                stable = request.require_stable
                topics = yield from _topics(state, call, group_id, asked.topics, stable)
            found.append((asked, topics))
        if number % ROWS == 0:
            yield
    return found


def _read_at_once(state: GroupsState, call: Call, request: Any) -> list[Any]:
    steps = _read(state, call, request)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: list[Any] = end.value
            return found


def _refusal(state: GroupsState, call: Call, asked: Any) -> int:
    """The error code of a group that is not told, or NONE."""
    group_id = asked.group_id
    if not call.rights.everything and (code := call.rights.refusal(DESCRIBE_GROUP, group_id)):
        return code
    group = state.groups.get(group_id)
    if group is not None:
        try:
            group.check_fetch(asked.member_id, asked.member_epoch)
        except PeerError as refused:
            return refused.code
    return errors.NONE


def _answered(
    state: GroupsState, call: Call, asked: Any, topics: list[dict[str, Any]]
) -> dict[str, Any]:
    """The answer for one group: a member may have gone since its offsets were read."""
    code = _refusal(state, call, asked)
    return {"group_id": asked.group_id, "topics": () if code else topics, "error_code": code}


def _topics(
    state: GroupsState, call: Call, group_id: str, asked: Any, stable: bool
) -> Generator[None, None, list[dict[str, Any]]]:
    """Steps that read the topics of a group. What an open transaction may change is looked up in
    the step that reads it."""
    hides = stable and group_id in state.pending.by_group
    found: list[dict[str, Any]] = []
    count = 0
    if asked is None:
        for one in _all_topics(state, call, group_id):
            if hides:
                _hide_unstable(state, group_id, one)
            found.append(one)
            count += 1 + len(one["partitions"])
            if count >= ROWS:
                count = 0
                yield
        return found
    for topic in asked:
        indexes = topic.partition_indexes
        one = _asked_topic(state, call, group_id, topic, indexes[:ROWS])
        if hides:
            _hide_unstable(state, group_id, one)
        found.append(one)
        count += 1 + len(one["partitions"])
        for at in range(ROWS, len(indexes), ROWS):
            yield
            more = _asked_topic(state, call, group_id, topic, indexes[at : at + ROWS])
            if hides:
                _hide_unstable(state, group_id, more)
            one["partitions"] += more["partitions"]
        if count >= ROWS:
            count = 0
            yield
    return found


def _hide_unstable(state: GroupsState, group_id: str, told: dict[str, Any]) -> None:
    """Replaces each offset that an open transaction may change with UNSTABLE_OFFSET_COMMIT."""
    name = told.get("name")
    if name is None:
        topic = state.image.topics_by_id.get(told["topic_id"])
        name = "" if topic is None else topic.name
    rows = told["partitions"]
    for at, row in enumerate(rows):
        index = row["partition_index"]
        if row["error_code"] == errors.NONE and state.pending.holds(group_id, name, index):
            rows[at] = refused(index, errors.UNSTABLE_OFFSET_COMMIT)


def _all_topics(state: GroupsState, call: Call, group_id: str) -> Iterator[dict[str, Any]]:
    by_id = call.version >= TOPIC_IDS_SINCE
    limited = not call.rights.everything
    committed = state.offsets.topics(group_id)
    for name in list(committed):
        if limited and not call.rights.may(DESCRIBE_TOPIC, name):
            continue
        partitions = committed.get(name, {})
        topic = state.image.topics_by_name.get(name)
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
            yield {"topic_id": topic.topic_id, "partitions": rows}
        else:
            yield {"name": name, "partitions": rows}


def _asked_topic(
    state: GroupsState, call: Call, group_id: str, asked: Any, indexes: Sequence[int]
) -> dict[str, Any]:
    """The answer for these partitions of a topic that is asked for."""
    image = state.image
    if call.version < TOPIC_IDS_SINCE:
        topic = image.topics_by_name.get(asked.name)
        named: dict[str, Any] = {"name": asked.name}
        name = asked.name
    else:
        topic_id = _id_of(asked)
        topic = image.topics_by_id.get(topic_id)
        named = {"topic_id": topic_id}
        if topic is None:
            rows = [refused(index, errors.UNKNOWN_TOPIC_ID) for index in indexes]
            return {**named, "partitions": rows}
        name = topic.name
    if not call.rights.everything and (code := call.rights.refusal(DESCRIBE_TOPIC, name)):
        return {**named, "partitions": [refused(index, code) for index in indexes]}
    committed = state.offsets.topics(group_id).get(name, {})
    current_id = None if topic is None else topic.topic_id
    rows = [_row(index, committed.get(index), current_id) for index in indexes]
    return {**named, "partitions": rows}


def _id_of(asked: Any) -> bytes:
    """The id of a topic that is asked for: of a request that was decoded in slices it is a UUID,
    None for zero."""
    topic_id = asked.topic_id
    if isinstance(topic_id, bytes):
        return topic_id
    return _NO_ID if topic_id is None else bytes(topic_id.bytes)


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
