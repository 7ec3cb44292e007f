"""AssignReplicasToDirs, API key 73, version 0; flexible from 0 (KIP-858).

A broker says in which of its log folders its replicas are.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.directories import Assigned, assign_replicas
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.wire.uuids import uuid_bytes


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    assigned = [
        Assigned(uuid_bytes(folder.id_), uuid_bytes(topic.topic_id), row.partition_index)
        for folder in request.directories
        for topic in folder.topics
        for row in topic.partitions
    ]
    try:
        records, codes = assign_replicas(
            context.situation, request.broker_id, request.broker_epoch, assigned
        )
    except PeerError as error:
        return Answer([], _values(error.code))
    told = iter(codes)
    folders = [
        {
            "id_": uuid_bytes(folder.id_),
            "topics": [
                {
                    "topic_id": uuid_bytes(topic.topic_id),
                    "partitions": [
                        {"partition_index": row.partition_index, "error_code": next(told)}
                        for row in topic.partitions
                    ],
                }
                for topic in folder.topics
            ],
        }
        for folder in request.directories
    ]
    return Answer(records, {**_values(errors.NONE), "directories": folders})


def _values(code: int) -> Values:
    return {"throttle_time": 0, "error_code": code, "directories": []}


def refused(request: Message, told: Values) -> Values:
    return _values(told["error_code"])


API = Api(*declared(73), decide, refused=refused)
