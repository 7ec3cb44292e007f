"""AlterClientQuotas, API key 49, versions 0 and 1 (1: flexible), KIP-546."""

from appliance.authorization.apis import declared
from appliance.controller.quotas import QuotaOperation, alter_quotas
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = [
        (
            [(part.entity_type, part.entity_name) for part in entry.entity],
            [QuotaOperation(one.key, one.value, one.remove) for one in entry.ops],
        )
        for entry in request.entries
    ]
    records, results = alter_quotas(context.situation.image, wanted)
    # An entity that is named again is answered once.
    told = {tuple(parts): result for (parts, _), result in zip(wanted, results, strict=True)}
    rows = [
        {
            "error_code": result.code,
            "error_message": result.message,
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in parts],
        }
        for parts, result in told.items()
    ]
    return Answer([] if request.validate_only else records, {"throttle_time": 0, "entries": rows})


def refused(request: Message, told: Values) -> Values:
    rows = [
        {
            **told,
            "entity": [
                {"entity_type": part.entity_type, "entity_name": part.entity_name}
                for part in entry.entity
            ],
        }
        for entry in request.entries
    ]
    return {"entries": rows}


API = Api(*declared(49), decide, refused=refused)
