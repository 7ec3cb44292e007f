"""CreatePartitions, API key 37, versions 0 to 3.

2: flexible. 3: quota errors. The timeout is not used because nothing is waited for.
"""

from appliance.authorization import needs
from appliance.authorization.apis import declared
from appliance.controller.partitions import MorePartitions, create_partitions
from appliance.handlers.admin import AdminContext, Answer, Api, Message, refusals


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    refused = refusals(context, needs.ALTER_TOPIC, [topic.name for topic in request.topics], None)
    wanted = []
    for topic in request.topics:
        if topic.name in refused:
            continue
        manual = topic.assignments
        assignments = None if manual is None else [item.broker_ids for item in manual]
        wanted.append(MorePartitions(topic.name, topic.count, assignments))
    records, results = create_partitions(context.situation, wanted)
    rows = [
        {"name": name, "error_code": result.code, "error_message": result.message}
        for name, result in (*results, *refused.items())
    ]
    return Answer([] if request.validate_only else records, {"throttle_time": 0, "results": rows})


API = Api(*declared(37), decide)
