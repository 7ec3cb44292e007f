"""Common parts of the APIs of delegation tokens (38 to 41): who may ask, and answers."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from appliance.base import errors
from appliance.base.caller import ANONYMOUS, Principal
from appliance.base.owner import LISTENER as OWNER_LISTENER
from appliance.config.delegation import read_limits
from appliance.controller.delegation_tokens import TokenOutcome
from appliance.handlers.admin import AdminContext, Answer, Message

_MS: Final = timedelta(milliseconds=1)
_PLAINTEXT: Final = "PLAINTEXT"
_SSL: Final = "SSL"


def is_refused(context: AdminContext) -> bool:
    """True if the caller's connection may not ask about tokens: it is plaintext, its client has not
    proved who it is, or has by a token. The node that the client asks decides it."""
    caller = context.rights.caller
    if caller.by_token:
        return True
    if caller.listener in ("", OWNER_LISTENER):
        return False
    protocol = context.situation.config.protocols().get(caller.listener, _PLAINTEXT)
    return protocol == _PLAINTEXT or (protocol == _SSL and caller.principal == ANONYMOUS)


def principal_of(row: Message) -> Principal:
    """The principal that a row of a request names."""
    return Principal(row.principal_type, row.principal_name)


def move_end(
    decide: Callable[..., TokenOutcome], request: Message, period: timedelta, context: AdminContext
) -> Answer:
    """The answer to RenewDelegationToken or ExpireDelegationToken. decide: `renew_token` or
    `expire_token`. period: as the request has it."""
    if is_refused(context):
        return _answer(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1, [])
    outcome = decide(
        context.situation.image,
        read_limits(context.situation.config),
        bytes(request.hmac),
        context.rights.caller.principal,
        period // _MS,
        context.now_ms,
    )
    return _answer(outcome.code, outcome.expires_ms, outcome.records)


def _answer(code: int, expires_ms: int, records: list[object]) -> Answer:
    return Answer(records, {"throttle_time": 0, "error_code": code, "expiry_timestamp": expires_ms})
