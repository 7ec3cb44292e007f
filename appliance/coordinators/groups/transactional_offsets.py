"""TxnOffsetCommit, API key 28, versions 0 to 5: offsets that count when a transaction is committed.

2: leader epoch; who loads is told so. 3: member, generation and instance id of the consumer whose
offsets they are (KIP-447), flexible. 4: TRANSACTION_ABORTABLE. 5: the transaction need not know
this partition of `__consumer_offsets` yet (KIP-890). The shell finds out whether the transaction is
open here, and asks its coordinator when it is not known.
"""

from typing import Any, Final

from appliance.authorization.needs import READ_TOPIC
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups.offset_records import key_bytes, value_bytes
from appliance.coordinators.groups.offsets import lasting, wrong_metadata
from appliance.coordinators.groups.records import OffsetCommitKey
from appliance.coordinators.groups.state import Turn, check_room
from appliance.coordinators.runtime.call import Call

ADDING_SINCE: Final = 5
ABORTABLE_SINCE: Final = 4
_LOADING_SINCE: Final = 2
_UNKNOWN: Final = errors.UNKNOWN_TOPIC_OR_PARTITION


def commit(turn: Turn, call: Call, request: Any) -> None:
    """Keep offsets until their transaction ends. Whatever is wrong with a partition is told before
    the transaction is asked about."""
    codes = [_codes(turn, call, topic) for topic in request.topics]
    good = any(errors.NONE in one for one in codes)
    if good and call.standing < errors.NONE:
        turn.unverified = True
        return
    code = call.standing
    if good and code == errors.NONE:
        code = _refused(turn, request, abortable=call.version >= ABORTABLE_SINCE)
    code = _told(call, code)
    answered = []
    for topic, its_codes in zip(request.topics, codes, strict=True):
        rows = []
        for one, found in zip(topic.partitions, its_codes, strict=True):
            told = found or code or wrong_metadata(turn, one.committed_metadata or "")
            if told == errors.NONE:
                _commit_one(turn, request, topic.name, one)
            rows.append({"partition_index": one.partition_index, "error_code": told})
        answered.append({"name": topic.name, "partitions": rows})
    turn.answer(call, {"throttle_time": 0, "topics": answered})


def _codes(turn: Turn, call: Call, topic: Any) -> list[int]:
    """The error code of each partition of a topic."""
    code = call.rights.refusal(READ_TOPIC, topic.name)
    known = turn.state.image.topics_by_name.get(topic.name)
    there = 0 if known is None else len(known.partitions)
    return [
        code or (errors.NONE if 0 <= one.partition_index < there else _UNKNOWN)
        for one in topic.partitions
    ]


def _refused(turn: Turn, request: Any, *, abortable: bool) -> int:
    """The error code of a group that does not take them, or for which there is no room."""
    group = turn.state.groups.get(request.group_id)
    if group is None:
        if getattr(request, "generation_id", -1) >= 0:
            return errors.ILLEGAL_GENERATION
        try:
            check_room(turn, request.group_id)
        except PeerError as refused:
            return errors.TRANSACTION_ABORTABLE if abortable else refused.code
        return errors.NONE
    try:
        group.check_pending_commit(turn, request)
    except PeerError as refused:
        return refused.code
    return errors.NONE


def _commit_one(turn: Turn, request: Any, name: str, asked: Any) -> None:
    topic = turn.state.image.topics_by_name[name]
    key = OffsetCommitKey(group=request.group_id, topic=name, partition=asked.partition_index)
    value = lasting(asked, topic, asked.committed_metadata or "", turn.wall_ms)
    producer = request.producer_id, request.producer_epoch
    turn.write_pending(producer, key, value, key_bytes(key), value_bytes(value))


def _told(call: Call, code: int) -> int:
    """Clients of old versions do not know that a coordinator may load."""
    loading = code == errors.COORDINATOR_LOAD_IN_PROGRESS
    old = call.version < _LOADING_SINCE
    return errors.COORDINATOR_NOT_AVAILABLE if loading and old else code


def refused(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """Every partition says why nothing was committed."""
    code = _told(call, code)
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": one.partition_index, "error_code": code}
                for one in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}
