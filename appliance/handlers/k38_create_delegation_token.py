"""CreateDelegationToken, API key 38, versions 1 to 3 (KIP-48).

2: flexible. 3: a token for another owner (KIP-373), which takes CREATE_TOKENS on that user. The
answer alone has the HMAC, which is the token's password.
"""

from datetime import timedelta
from typing import Final

from appliance.authentication.delegation import hmac_of
from appliance.authorization.apis import declared
from appliance.authorization.needs import CREATE_TOKENS_OF_USER
from appliance.base import errors
from appliance.base.caller import Principal
from appliance.config.delegation import read_limits
from appliance.controller.delegation_tokens import (
    USER,
    TokenOutcome,
    create_token,
    format_principal,
)
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.handlers.delegation import is_refused, principal_of
from appliance.wire.uuids import format_uuid

_MS: Final = timedelta(milliseconds=1)


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    requester = context.rights.caller.principal
    owner = requester
    if name := getattr(request, "owner_principal_name", None):
        owner = Principal(request.owner_principal_type or "", name)
    outcome = _outcome(request, owner, requester, context)
    values: Values = {
        "throttle_time": 0,
        "error_code": outcome.code,
        "principal_type": owner.type,
        "principal_name": owner.name,
        "token_requester_principal_type": requester.type,
        "token_requester_principal_name": requester.name,
    }
    limits, token = read_limits(context.situation.config), outcome.token
    if token is None or limits is None:
        return Answer([], values | _NO_TOKEN | dict.fromkeys(_TIMES, outcome.expires_ms))
    told = {
        "issue_timestamp": token.issue_timestamp,
        "expiry_timestamp": token.expiration_timestamp,
        "max_timestamp": token.max_timestamp,
        "token_id": token.token_id,
        "hmac": hmac_of(limits.secret, token.token_id),
    }
    return Answer(outcome.records, values | told)


def _outcome(
    request: Message, owner: Principal, requester: Principal, context: AdminContext
) -> TokenOutcome:
    if is_refused(context):
        return TokenOutcome(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [], -1)
    if owner != requester:
        code = context.rights.refusal(CREATE_TOKENS_OF_USER, format_principal(owner))
        if code != errors.NONE:
            return TokenOutcome(code, [], -1)
    if owner.type != USER:
        return TokenOutcome(errors.INVALID_PRINCIPAL_TYPE, [], -1)
    return create_token(
        read_limits(context.situation.config),
        owner,
        requester,
        [principal_of(one) for one in request.renewers],
        request.max_lifetime // _MS,
        context.now_ms,
        format_uuid(context.situation.new_id()),
    )


_NO_TOKEN: Final[Values] = {"token_id": "", "hmac": b""}
_TIMES: Final = ("issue_timestamp", "expiry_timestamp", "max_timestamp")

API = Api(*declared(38), decide, here=is_refused)
