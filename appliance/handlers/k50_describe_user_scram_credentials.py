"""DescribeUserScramCredentials, API key 50, version 0 (flexible), KIP-554.

A request that names nobody asks for all users. kafka-configs asks this whenever it describes users.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.scram import credentials
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    known = credentials(context.situation.image)
    names = [user.name for user in request.users or ()] or list(known)
    seen: dict[str, bool] = {}
    for name in names:
        seen[name] = name in seen
    rows = [_row(name, twice, known) for name, twice in seen.items()]
    values = {"throttle_time": 0, "error_code": errors.NONE, "error_message": ""}
    return Answer([], {**values, "results": rows})


def _row(name: str, twice: bool, known: dict[str, list[tuple[int, int]]]) -> Values:
    if not twice and name in known:
        infos = [{"mechanism": one, "iterations": count} for one, count in known[name]]
        told = {"error_code": errors.NONE, "error_message": ""}
        return {"user": name, **told, "credential_infos": infos}
    code = errors.DUPLICATE_RESOURCE if twice else errors.RESOURCE_NOT_FOUND
    text = f"Attempt to describe a user credential that does not exist: {name[:100]}"
    if twice:
        text = "Cannot describe SCRAM credentials for the same user twice in a single request:"
        text = f"{text} {name[:100]}"
    return {"user": name, "error_code": code, "error_message": text, "credential_infos": []}


def refused(request: Message, told: Values) -> Values:
    """A row for each user, unnamed, as Kafka has it."""
    told = {**told, "error_message": None}
    row = {**told, "user": "", "credential_infos": []}
    return {**told, "results": [row for _ in request.users or ()]}


API = Api(*declared(50), decide, any_node=True, refused=refused)
