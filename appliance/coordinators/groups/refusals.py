"""The answer of every API that carries one error for the whole request.

Callers: the shard, for a request that a decision refused or that comes while it does not serve.
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.base import errors
from appliance.coordinators.groups import (
    consumer_describe,
    consumer_heartbeat,
    transactional_offsets,
)
from appliance.coordinators.groups.classic_answers import join_refused, sync_refused
from appliance.coordinators.groups.group_descriptions import describe_refused
from appliance.coordinators.groups.offset_fetch import refused
from appliance.coordinators.groups.offsets import TOPIC_IDS_SINCE
from appliance.coordinators.groups.routing import GROUPS_SINCE
from appliance.coordinators.groups.state import Turn
from appliance.coordinators.runtime.call import Call

Refusal = Callable[[Turn, Call, Any, int], dict[str, Any]]


def _commit(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    topics = [
        {
            **_named(topic, call.version >= TOPIC_IDS_SINCE),
            "partitions": [
                {"partition_index": one.partition_index, "error_code": code}
                for one in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


def _fetch(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """Version 1 has no error of its own: every partition says it."""
    if call.version < GROUPS_SINCE:
        topics = _fetch_topics(request.topics, code) if call.version < 2 else []
        return {"throttle_time": 0, "error_code": code, "topics": topics}
    groups = [
        {"group_id": one.group_id, "topics": (), "error_code": code}
        for one in request.groups
        if turn.state.owns(one.group_id)
    ]
    return {"throttle_time": 0, "groups": groups}


def _fetch_topics(topics: Any, code: int) -> list[dict[str, Any]]:
    return [
        {
            "name": topic.name,
            "partitions": [refused(index, code) for index in topic.partition_indexes],
        }
        for topic in topics
    ]


def _named(topic: Any, by_id: bool) -> dict[str, Any]:
    if not by_id:
        return {"name": topic.name}
    return {"topic_id": topic.topic_id}


def _join(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    return join_refused(call, request.member_id, code)


def _sync(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """A rebalance that a shard lost begins anew at JoinGroup. Java's consumer takes
    COORDINATOR_LOAD_IN_PROGRESS, which Apache Kafka 4 answers, for a failure of its caller's poll;
    Apache Kafka up to 3 answered this."""
    loading = code == errors.COORDINATOR_LOAD_IN_PROGRESS
    return sync_refused(errors.REBALANCE_IN_PROGRESS if loading else code)


def _heartbeat(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    """While a shard loads, members must not think that they lost their place."""
    loading = code == errors.COORDINATOR_LOAD_IN_PROGRESS
    return {"throttle_time": 0, "error_code": errors.NONE if loading else code}


def _leave(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    if code != errors.UNKNOWN_MEMBER_ID or call.version < 3:
        return {"throttle_time": 0, "error_code": code, "members": ()}
    members = [
        {
            "member_id": one.member_id,
            "group_instance_id": one.group_instance_id,
            "error_code": code,
        }
        for one in request.members
    ]
    return {"throttle_time": 0, "error_code": errors.NONE, "members": members}


def _list(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    return {"throttle_time": 0, "error_code": code, "groups": ()}


def _delete(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    results = [
        {"group_id": one, "error_code": code}
        for one in request.groups_names
        if turn.state.owns(one)
    ]
    return {"throttle_time": 0, "results": results}


def _offset_delete(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    return {"throttle_time": 0, "error_code": code, "topics": ()}


def _consumer_heartbeat(turn: Turn, call: Call, request: Any, code: int) -> dict[str, Any]:
    return consumer_heartbeat.refused(code)


REFUSALS: Final[dict[int, Refusal]] = {
    8: _commit,
    9: _fetch,
    11: _join,
    12: _heartbeat,
    13: _leave,
    14: _sync,
    15: describe_refused,
    16: _list,
    28: transactional_offsets.refused,
    42: _delete,
    47: _offset_delete,
    68: _consumer_heartbeat,
    69: consumer_describe.describe_refused,
}
"""By API key; a protocol that adds APIs adds its own."""
