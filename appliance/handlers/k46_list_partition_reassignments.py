"""ListPartitionReassignments, API key 46, version 0; flexible (KIP-455).

Only partitions whose replicas are on their way are told.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.reassignments import reassignments
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    asked = None
    if request.topics is not None:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    rows = [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": one.index,
                    "replicas": one.replicas,
                    "adding_replicas": one.adding_replicas,
                    "removing_replicas": one.removing_replicas,
                }
                for one in partitions
            ],
        }
        for name, partitions in reassignments(context.situation.image, asked)
    ]
    values = {"throttle_time": 0, "error_code": errors.NONE, "error_message": None, "topics": rows}
    return Answer([], values)


def refused(request: Message, told: Values) -> Values:
    """Each partition that was asked about, without replicas, as Apache Kafka does."""
    nothing: Values = {"replicas": [], "adding_replicas": [], "removing_replicas": []}
    rows = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": index, **nothing} for index in topic.partition_indexes
            ],
        }
        for topic in request.topics or ()
    ]
    return {**told, "topics": rows}


API = Api(*declared(46), decide, refused=refused)
