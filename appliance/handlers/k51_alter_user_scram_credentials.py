"""AlterUserScramCredentials, API key 51, version 0 (flexible), KIP-554."""

from appliance.authorization.apis import declared
from appliance.controller.scram import Deletion, Upsertion, alter
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    deletions = [Deletion(one.name, one.mechanism) for one in request.deletions]
    upsertions = [
        Upsertion(
            one.name, one.mechanism, one.iterations, bytes(one.salt), bytes(one.salted_password)
        )
        for one in request.upsertions
    ]
    records, results = alter(context.situation.image, deletions, upsertions)
    rows = [
        {"user": name, "error_code": result.code, "error_message": result.message}
        for name, result in results.items()
    ]
    return Answer(records, {"throttle_time": 0, "results": rows})


def refused(request: Message, told: Values) -> Values:
    """A row for each user."""
    names = sorted({one.name for one in (*request.deletions, *request.upsertions)})
    return {"results": [{**told, "user": name} for name in names]}


API = Api(*declared(51), decide, refused=refused)
