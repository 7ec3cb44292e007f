"""DescribeDelegationToken, API key 41, versions 1 to 3 (KIP-48).

2: flexible. 3: who requested a token (KIP-373). Owners, requesters and renewers see their tokens,
others need DESCRIBE on the token or DESCRIBE_TOKENS on its owner: what they may not see is left
out. The answer has the HMACs, as Apache Kafka's.
"""

from functools import partial

from appliance.authentication.delegation import hmac_of
from appliance.authorization.apis import declared
from appliance.authorization.needs import DESCRIBE_TOKEN, DESCRIBE_TOKENS_OF_USER
from appliance.base import errors
from appliance.base.caller import Principal
from appliance.config.delegation import read_limits
from appliance.controller.delegation_tokens import Token, described_tokens, parse_principal
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.handlers.delegation import is_refused, principal_of


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    if is_refused(context):
        return _answer(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])
    limits = read_limits(context.situation.config)
    if limits is None:
        return _answer(errors.DELEGATION_TOKEN_AUTH_DISABLED, [])
    rights, owners = context.rights, request.owners
    found = described_tokens(
        context.situation.image,
        None if owners is None else [principal_of(one) for one in owners],
        rights.caller.principal,
        partial(rights.may, DESCRIBE_TOKEN),
        partial(rights.may, DESCRIBE_TOKENS_OF_USER),
    )
    return _answer(errors.NONE, [_row(one, limits.secret) for one in found])


def _answer(code: int, rows: list[Values]) -> Answer:
    return Answer([], {"throttle_time": 0, "error_code": code, "tokens": rows})


def _row(token: Token, secret: str) -> Values:
    requester = parse_principal(token.requester)
    return {
        **_named(parse_principal(token.owner)),
        "token_requester_principal_type": requester.type,
        "token_requester_principal_name": requester.name,
        "issue_timestamp": token.issue_timestamp,
        "expiry_timestamp": token.expiration_timestamp,
        "max_timestamp": token.max_timestamp,
        "token_id": token.token_id,
        "hmac": hmac_of(secret, token.token_id),
        "renewers": [_named(parse_principal(one)) for one in token.renewers],
    }


def _named(principal: Principal) -> Values:
    return {"principal_type": principal.type, "principal_name": principal.name}


API = Api(*declared(41), decide, any_node=True)
