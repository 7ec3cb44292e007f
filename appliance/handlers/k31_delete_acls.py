"""DeleteAcls, API key 31, versions 1 to 3 (2: flexible; 3: users), KIP-140, KIP-290."""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.acls import remove
from appliance.handlers.acl_answers import NO_AUTHORIZER, asked, entry_of, is_secured, resource_of
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    filters = [asked(one) for one in request.filters]
    if not is_secured(context):
        told = {"error_code": NO_AUTHORIZER.code, "error_message": NO_AUTHORIZER.message}
        return Answer([], {"throttle_time": 0, **refused(request, told)})
    records, results = remove(context.situation.image, filters)
    fine = {"error_code": errors.NONE, "error_message": None}
    rows = [
        {
            "error_code": result.code,
            "error_message": result.message,
            "matching_acls": [{**fine, **resource_of(one), **entry_of(one)} for one in gone],
        }
        for result, gone in results
    ]
    return Answer(records, {"throttle_time": 0, "filter_results": rows})


def refused(request: Message, told: Values) -> Values:
    return {"filter_results": [{**told, "matching_acls": []} for _ in request.filters]}


API = Api(*declared(31), decide, refused=refused)
