"""ExpireDelegationToken, API key 40, versions 1 and 2 (KIP-48). 2: flexible."""

from datetime import timedelta
from typing import Final

from appliance.authorization.apis import declared
from appliance.config.delegation import read_limits
from appliance.controller.delegation_tokens import expire_token
from appliance.handlers.admin import AdminContext, Answer, Api, Message
from appliance.handlers.delegation import answer_end, is_refused, not_allowed

_MS: Final = timedelta(milliseconds=1)


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    if is_refused(context):
        return not_allowed()
    outcome = expire_token(
        context.situation.image,
        read_limits(context.situation.config),
        bytes(request.hmac),
        context.rights.caller.principal,
        request.expiry_time_period // _MS,
        context.now_ms,
    )
    return answer_end(outcome.code, outcome.expires_ms, outcome.records)


API = Api(*declared(40), decide, here=is_refused)
