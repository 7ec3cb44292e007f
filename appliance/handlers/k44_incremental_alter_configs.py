"""IncrementalAlterConfigs, API key 44, versions 0 and 1 (1: flexible), KIP-339.

SET, DELETE, and for lists APPEND and SUBTRACT, on topics, this broker and the default of all
brokers. Levels of loggers (KIP-412) are no metadata: the node that is asked changes its own.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.config_resources import ConfigResource
from appliance.controller.configs import SET, ConfigOperation, alter_incrementally
from appliance.handlers.admin import AdminContext, Answer, Api, Message
from appliance.handlers.config_rights import is_here, is_of_files, not_altered
from appliance.metadata.image import BROKER_LOGGER


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = [
        (
            ConfigResource(item.resource_type, item.resource_name),
            [ConfigOperation(one.name, one.config_operation, one.value) for one in item.configs],
        )
        for item in request.resources
    ]
    refused = not_altered(context.rights, [resource for resource, _ in wanted])
    allowed = [one for one in wanted if one[0] not in refused]
    context.situation.here = is_here(context.rights)
    records, results = alter_incrementally(context.situation, allowed)
    things: list[dict[str, str]] = []
    if not request.validate_only:
        done = {resource for resource, result in results if result.code == errors.NONE}
        things = _set_levels(context, [one for one in allowed if one[0] in done])
    rows = [
        {
            "error_code": result.code,
            "error_message": result.message,
            "resource_type": resource.kind,
            "resource_name": resource.name,
        }
        for resource, result in (*results, *refused.items())
    ]
    values = {"throttle_time": 0, "responses": rows}
    return Answer([] if request.validate_only else records, values, things=things)


def _set_levels(
    context: AdminContext, wanted: list[tuple[ConfigResource, list[ConfigOperation]]]
) -> list[dict[str, str]]:
    """Returns what was changed, for the audit."""
    things = []
    for resource, operations in wanted:
        if resource.kind == BROKER_LOGGER:
            assert context.loggers is not None
            for one in operations:
                level = one.value if one.kind == SET else None
                context.loggers.set(one.key, level)
                thing = {"type": "config", "name": one.key, "action": "set" if level else "delete"}
                thing |= {"resource": "BROKER_LOGGER", "of": resource.name}
                things.append(thing | ({"value": level} if level else {}))
    return things


def _of_loggers(request: Message) -> bool:
    """True if only levels of loggers change."""
    kinds = {item.resource_type for item in request.resources}
    return kinds == {BROKER_LOGGER}


API = Api(*declared(44), decide, own=_of_loggers, files=is_of_files)
