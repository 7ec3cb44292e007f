"""CreateAcls, API key 30, versions 1 to 3 (2: flexible; 3: users), KIP-140, KIP-290."""

from appliance.authorization.apis import declared
from appliance.authorization.standard import AclRule
from appliance.base import errors
from appliance.controller.acls import ANY, MATCH, create
from appliance.controller.decision import Result
from appliance.handlers.acl_answers import NO_AUTHORIZER, check_known, is_secured
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = [_rule(one) for one in request.creations]
    if not is_secured(context):
        return _answer([NO_AUTHORIZER] * len(wanted))
    if any(map(_is_filter, wanted)):
        # Kafka cannot even hold such a rule, and answers none of the request.
        return _answer([Result(errors.UNKNOWN_SERVER_ERROR, None)] * len(wanted))
    records, results = create(context.situation.image, wanted, context.situation.new_id)
    return _answer(results)._replace(records=records)


def _rule(one: Message) -> AclRule:
    rule = AclRule(
        int(one.resource_type), int(one.resource_pattern_type), one.resource_name, one.principal,
        one.host, int(one.operation), int(one.permission_type),
    )  # fmt: skip
    check_known(rule.kind, rule.pattern, rule.operation, rule.permission)
    return rule


def _is_filter(rule: AclRule) -> bool:
    return ANY in (rule.kind, rule.pattern, rule.operation, rule.permission) or (
        rule.pattern == MATCH
    )


def _answer(results: list[Result]) -> Answer:
    rows = [
        {"error_code": one.code, "error_message": one.message if one.code else ""}
        for one in results
    ]
    return Answer([], {"throttle_time": 0, "results": rows})


def refused(request: Message, told: Values) -> Values:
    return {"results": [told for _ in request.creations]}


API = Api(*declared(30), decide, refused=refused)
