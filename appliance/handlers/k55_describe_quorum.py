"""DescribeQuorum, API key 55, versions 0 to 2; flexible from 0.

1: fetch and caught-up times. 2: directory ids, error texts, nodes (KIP-853).
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.ids import METADATA_TOPIC
from appliance.handlers.admin import AdminContext, Answer, Api, Message, QuorumReplica, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    topics = []
    known_asked = False
    for topic in request.topics:
        rows = []
        for item in topic.partitions:
            known = topic.topic_name == METADATA_TOPIC and item.partition_index == 0
            known_asked |= known
            rows.append(_partition(context) if known else _unknown(item.partition_index))
        topics.append({"topic_name": topic.topic_name, "partitions": rows})
    values = {
        "error_code": errors.NONE,
        "error_message": "",
        "topics": topics,
        "nodes": _nodes(context) if known_asked else [],
    }
    return Answer([], values)


def _nodes(context: AdminContext) -> list[Values]:
    """Where controllers are reached: as they registered, else as the settings have the voters."""
    name = context.situation.config.list("controller.listener.names")[0].upper()
    found: dict[int, list[Values]] = {
        node_id: [{"name": name, "host": host, "port": port}]
        for node_id, (host, port) in context.quorum.reached.items()
    }
    for one in context.situation.image.controllers.values():
        ends = [{"name": end.name, "host": end.host, "port": end.port} for end in one.endpoints]
        if ends or one.controller_id not in found:
            found[one.controller_id] = ends
    return [{"node_id": node_id, "listeners": ends} for node_id, ends in sorted(found.items())]


def _partition(context: AdminContext) -> Values:
    quorum = context.quorum
    if quorum.leader_id != context.situation.node_id:
        return _refused(0, errors.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum.") | {
            "leader_id": quorum.leader_id,
            "leader_epoch": quorum.leader_epoch,
        }
    return {
        "partition_index": 0,
        "error_code": errors.NONE,
        "error_message": "",
        "leader_id": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "current_voters": [_replica(one) for one in quorum.voters],
        "observers": [_replica(one) for one in quorum.observers],
    }


def _replica(one: QuorumReplica) -> Values:
    return {
        "replica_id": one.node_id,
        "replica_directory_id": one.directory_id,
        "log_end_offset": one.log_end,
        "last_fetch_timestamp": one.fetched_ms,
        "last_caught_up_timestamp": one.caught_up_ms,
    }


def _unknown(index: int) -> Values:
    text = f"This server does not host this topic-partition. Only {METADATA_TOPIC}-0 has a quorum."
    return _refused(index, errors.UNKNOWN_TOPIC_OR_PARTITION, text)


def _refused(index: int, code: int, text: str) -> Values:
    return {
        "partition_index": index,
        "error_code": code,
        "error_message": text,
        "leader_id": 0,
        "leader_epoch": 0,
        "high_watermark": 0,
        "current_voters": [],
        "observers": [],
    }


def refused(request: Message, told: Values) -> Values:
    return {**told, "topics": [], "nodes": []}


API = Api(*declared(55), decide, any_node=True, refused=refused)
