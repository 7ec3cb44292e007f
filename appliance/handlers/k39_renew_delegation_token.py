"""RenewDelegationToken, API key 39, versions 1 and 2 (KIP-48). 2: flexible."""

from appliance.authorization.apis import declared
from appliance.controller.delegation_tokens import renew_token
from appliance.handlers.admin import AdminContext, Answer, Api, Message
from appliance.handlers.delegation import is_refused, move_end


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    return move_end(renew_token, request, request.renew_period, context)


API = Api(*declared(39), decide, here=is_refused)
