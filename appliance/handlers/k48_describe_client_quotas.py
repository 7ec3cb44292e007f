"""DescribeClientQuotas, API key 48, versions 0 and 1 (1: flexible), KIP-546."""

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.quotas import Component, describe_quotas
from appliance.handlers.admin import AdminContext, Answer, Api, Message


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    components = [
        Component(one.entity_type, one.match_type, one.match) for one in request.components
    ]
    try:
        found = describe_quotas(context.situation.image, components, request.strict)
    except PeerError as error:
        return Answer([], _values(error.code, error.message, None))
    rows = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "values": [{"key": key, "value": value} for key, value in sorted(quotas.items())],
        }
        for entity, quotas in found
    ]
    return Answer([], _values(errors.NONE, None, rows))


def _values(code: int, text: str | None, rows: object) -> dict[str, object]:
    return {"throttle_time": 0, "error_code": code, "error_message": text, "entries": rows}


API = Api(48, "DescribeClientQuotas", 0, 1, 1, decide)
