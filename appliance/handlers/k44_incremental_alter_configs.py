"""IncrementalAlterConfigs, API key 44, versions 0 and 1 (1: flexible), KIP-339.

SET, DELETE, and for lists APPEND and SUBTRACT, on topics, this broker and the default of all
brokers.
"""

from appliance.controller.config_resources import Resource
from appliance.controller.configs import Operation, alter_incrementally
from appliance.handlers.admin import AdminContext, Answer, Api, Message
from appliance.handlers.config_rights import not_altered


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = [
        (
            Resource(item.resource_type, item.resource_name),
            [Operation(one.name, one.config_operation, one.value) for one in item.configs],
        )
        for item in request.resources
    ]
    refused = not_altered(context.rights, [resource for resource, _ in wanted])
    allowed = [one for one in wanted if one[0] not in refused]
    records, results = alter_incrementally(context.situation, allowed)
    rows = [
        {
            "error_code": result.code,
            "error_message": result.message,
            "resource_type": resource.kind,
            "resource_name": resource.name,
        }
        for resource, result in (*results, *refused.items())
    ]
    return Answer([] if request.validate_only else records, {"throttle_time": 0, "responses": rows})


API = Api(44, "IncrementalAlterConfigs", 0, 1, 1, decide)
