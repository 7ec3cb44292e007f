"""AlterPartitionReassignments, API key 45, versions 0 and 1; flexible from 0 (KIP-455).

1: whether the replication factor may change. A reassignment has begun when the answer comes; it is
done when the new replicas are in sync.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.reassignments import alter_reassignments
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    allowed = version < 1 or request.allow_replication_factor_change
    wanted = [
        (topic.name, [(item.partition_index, item.replicas) for item in topic.partitions])
        for topic in request.topics
    ]
    records, results = alter_reassignments(context.situation, wanted, may_change_factor=allowed)
    rows = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "error_code": one.code, "error_message": one.message}
                for index, one in partitions
            ],
        }
        for name, partitions in results
    ]
    values = {
        "throttle_time": 0,
        "allow_replication_factor_change": allowed,
        "error_code": errors.NONE,
        "error_message": "" if not rows else None,
        "responses": rows,
    }
    return Answer(records, values)


def refused(request: Message, told: Values) -> Values:
    rows = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": item.partition_index, **told} for item in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {**told, "responses": rows}


API = Api(*declared(45), decide, refused=refused)
