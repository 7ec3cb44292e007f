"""ListConfigResources, API key 74, versions 0 and 1; flexible from 0 (KIP-1000, KIP-1142).

0: client metrics only. 1: resource types; none means all. Topics and brokers are all those there
are; groups and client metrics those for which something was set.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.metadata.image import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC

_TYPES = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    asked = (request.resource_types or _TYPES) if version >= 1 else (CLIENT_METRICS,)
    code = errors.NONE
    if any(kind not in _TYPES for kind in asked):
        asked, code = (), errors.UNSUPPORTED_VERSION
    image = context.situation.image
    brokers = [str(broker) for broker in sorted(image.brokers)]
    names = {TOPIC: list(image.topics_by_name), BROKER: brokers, BROKER_LOGGER: brokers}
    for kind in (GROUP, CLIENT_METRICS):
        names[kind] = [name for type_, name in image.configs if type_ == kind]
    rows = [
        {"resource_name": name, "resource_type": kind}
        for kind in _TYPES
        if kind in asked
        for name in names[kind]
    ]
    return Answer([], {"throttle_time": 0, "error_code": code, "config_resources": rows})


def refused(request: Message, told: Values) -> Values:
    return {**told, "config_resources": []}


API = Api(*declared(74), decide, any_node=True, refused=refused)
