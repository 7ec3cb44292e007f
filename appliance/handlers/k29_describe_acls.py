"""DescribeAcls, API key 29, versions 1 to 3 (2: flexible; 3: users), KIP-140, KIP-290."""

from typing import Final

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.acls import rules
from appliance.handlers.acl_answers import asked, entry_of, is_secured, resource_of
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values

_NO_AUTHORIZER: Final = "No Authorizer is configured on the broker"
"""In Kafka the broker answers it, in words other than the controller's."""


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = asked(request)
    if not is_secured(context):
        told = {"error_code": errors.SECURITY_DISABLED, "error_message": _NO_AUTHORIZER}
        return Answer([], {"throttle_time": 0, **told, "resources": []})
    found: dict[tuple[int, str, int], Values] = {}
    for _, rule in rules(context.situation.image):
        if wanted.matches(rule):
            where = (rule.kind, rule.name, rule.pattern)
            row = found.setdefault(where, {**resource_of(rule), "acls": []})
            row["acls"].append(entry_of(rule))
    rows = [found[where] for where in sorted(found)]
    told = {"error_code": errors.NONE, "error_message": ""}
    return Answer([], {"throttle_time": 0, **told, "resources": rows})


def refused(request: Message, told: Values) -> Values:
    return {**told, "resources": []}


API = Api(*declared(29), decide, any_node=True, refused=refused)
