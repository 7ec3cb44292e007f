"""UnregisterBroker, API key 64, version 0; flexible from 0.

The cluster forgets a broker that does not come back. One that lives registers again by itself.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.broker_states import unregister
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    if context.heartbeats is None:  # who leads decides; the answer only shows its shape
        return Answer([], _values(errors.NOT_CONTROLLER, None))
    try:
        records = unregister(context.situation, context.heartbeats, request.broker_id)
    except PeerError as error:
        return Answer([], _values(error.code, error.message))
    return Answer(records, _values(errors.NONE, None))


def _values(code: int, text: str | None) -> Values:
    return {"throttle_time": 0, "error_code": code, "error_message": text}


def refused(request: Message, told: Values) -> Values:
    return told


API = Api(*declared(64), decide, refused=refused)
