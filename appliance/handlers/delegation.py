"""Common parts of the APIs of delegation tokens (38 to 41): who may ask, and answers."""

from typing import Final

from appliance.base import errors
from appliance.base.caller import ANONYMOUS, Principal
from appliance.base.owner import LISTENER as OWNER_LISTENER
from appliance.handlers.admin import AdminContext, Answer, Message

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


def answer_end(code: int, expires_ms: int, records: list[object]) -> Answer:
    """The answer to RenewDelegationToken and ExpireDelegationToken."""
    return Answer(records, {"throttle_time": 0, "error_code": code, "expiry_timestamp": expires_ms})


def not_allowed() -> Answer:
    """The answer of the same to who may not ask."""
    return answer_end(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1, [])
