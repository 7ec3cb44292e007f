"""DescribeQuorum, API key 55, versions 0 to 2; flexible from 0.

1: fetch and caught-up times. 2: directory ids, error texts, nodes (KIP-853). The quorum is this
node alone; brokers that only follow do not exist yet.
"""

from appliance.base import errors
from appliance.base.ids import METADATA_TOPIC
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


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
        "nodes": []
        if not known_asked
        else [
            {
                "node_id": controller.controller_id,
                "listeners": [
                    {"name": end.name, "host": end.host, "port": end.port}
                    for end in controller.endpoints
                ],
            }
            for controller in context.situation.image.controllers.values()
        ],
    }
    return Answer([], values)


def _partition(context: AdminContext) -> Values:
    quorum = context.quorum
    if quorum.leader_id != context.situation.node_id:
        return _refused(0, errors.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum.") | {
            "leader_id": quorum.leader_id,
            "leader_epoch": quorum.leader_epoch,
        }
    voters = [
        {
            "replica_id": node_id,
            "replica_directory_id": directory_id,
            "log_end_offset": quorum.log_end if node_id == context.situation.node_id else -1,
            "last_fetch_timestamp": context.now_ms if node_id == context.situation.node_id else -1,
            "last_caught_up_timestamp": context.now_ms
            if node_id == context.situation.node_id
            else -1,
        }
        for node_id, directory_id in quorum.voters
    ]
    return {
        "partition_index": 0,
        "error_code": errors.NONE,
        "error_message": "",
        "leader_id": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "current_voters": voters,
        "observers": [],
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


API = Api(55, "DescribeQuorum", 0, 2, 0, decide, any_node=True, refused=refused)
