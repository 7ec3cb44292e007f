"""ElectLeaders, API key 43, versions 0 to 2.

0: preferred elections only. 1: unclean ones too, and an error for the whole. 2: flexible. An
election is done when its record is durable: the timeout is not waited for.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.elections import PREFERRED, elect_leaders
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = None
    if request.topic_partitions is not None:
        wanted = [(item.topic, item.partitions) for item in request.topic_partitions]
    kind = request.election_type if version >= 1 else PREFERRED
    records, whole, results = elect_leaders(context.situation, kind, wanted)
    rows = [
        {
            "topic": name,
            "partition_result": [
                {"partition_id": index, "error_code": one.code, "error_message": one.message}
                for index, one in partitions
            ],
        }
        for name, partitions in results
    ]
    values = {"throttle_time": 0, "error_code": whole.code, "replica_election_results": rows}
    return Answer(records if whole.code == errors.NONE else [], values)


def refused(request: Message, told: Values) -> Values:
    rows = [
        {
            "topic": item.topic,
            "partition_result": [{"partition_id": index, **told} for index in item.partitions],
        }
        for item in request.topic_partitions or ()
    ]
    return {**told, "replica_election_results": rows}


API = Api(*declared(43), decide, refused=refused)
