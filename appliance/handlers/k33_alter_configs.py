"""AlterConfigs, API key 33, versions 0 to 2 (2: flexible), for clients that do not know key 44.

Replaces all settings of a resource: what is not named goes back to its default.
"""

from appliance.authorization.apis import declared
from appliance.controller.config_resources import ConfigResource
from appliance.controller.configs import replace_all
from appliance.handlers.admin import AdminContext, Answer, Api, Message
from appliance.handlers.config_rights import is_here, is_of_files, not_altered


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = [
        (
            ConfigResource(item.resource_type, item.resource_name),
            [(config.name, config.value) for config in item.configs],
        )
        for item in request.resources
    ]
    refused = not_altered(context.rights, [resource for resource, _ in wanted])
    allowed = [one for one in wanted if one[0] not in refused]
    context.situation.here = is_here(context.rights)
    records, results = replace_all(context.situation, allowed)
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


API = Api(*declared(33), decide, files=is_of_files)
