"""ExpireDelegationToken, API key 40, versions 1 and 2 (KIP-48). 2: flexible."""

from appliance.authorization.apis import declared
from appliance.controller.delegation_tokens import expire_token
from appliance.handlers.admin import AdminContext, Answer, Api, Message
from appliance.handlers.delegation import is_refused, move_end


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    return move_end(expire_token, request, request.expiry_time_period, context)


API = Api(*declared(40), decide, here=is_refused)
