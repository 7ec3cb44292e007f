"""DescribeClientQuotas, API key 48, versions 0 and 1 (1: flexible), KIP-546.

A filter whose only component has the entity type `penstock-usage` (any name) asks something else:
how much of each quota is used now, and who is throttled. One entity for each meter: `user`,
`client-id` or `ip` of who is counted, `quota`, and `set-for`, the entity that has the limit. Its
values: limit, rate, used (1.0: all of it), throttle-ms (still to wait), throttled (how often),
last-throttle-ms (as the last answer told) and throttled-for-ms (since when one pause has come after
the other). Apache Kafka answers UNSUPPORTED_VERSION to it, as to every entity type that it does not
know.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.quotas import Component, describe_quotas
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.quotas.limits import CONNECTION, USAGE, entity_text
from appliance.quotas.meters import MeterUsage

_ANY = 2


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    if [(one.entity_type, one.match_type) for one in request.components] == [(USAGE, _ANY)]:
        return Answer([], _values(errors.NONE, None, [_usage(one) for one in context.usage()]))
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
    return Answer([], _values(errors.NONE, "", rows))


def _usage(one: MeterUsage) -> dict[str, object]:
    names = [("quota", one.kind), ("set-for", entity_text(one.entity) or "broker")]
    if one.user:
        names.append(("ip" if one.kind == CONNECTION else "user", one.user))
    if one.client_id:
        names.append(("client-id", one.client_id))
    numbers = {
        "limit": one.limit,
        "rate": one.rate,
        "used": one.used,
        "throttle-ms": float(one.wait_ms),
        "throttled": float(one.pauses),
        "last-throttle-ms": float(one.last_ms),
        "throttled-for-ms": float(one.held_ms),
    }
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in names],
        "values": [{"key": key, "value": value} for key, value in numbers.items()],
    }


def _values(code: int, text: str | None, rows: object) -> dict[str, object]:
    return {"throttle_time": 0, "error_code": code, "error_message": text, "entries": rows}


def refused(request: Message, told: Values) -> Values:
    return {**told, "error_message": None, "entries": None}


API = Api(*declared(48), decide, any_node=True, refused=refused)
