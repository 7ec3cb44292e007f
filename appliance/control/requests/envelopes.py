"""Envelopes at the active controller: the request in one, for whom it is, and the answer's envelope
(KIP-590).

Called by `admin_requests.py`.
"""

from typing import Any

from appliance.base import errors
from appliance.base.caller import Caller, Principal
from appliance.base.errors import MalformedRequest, PeerError
from appliance.control.requests.pending_answers import LOST, Answer, Decision, Unencoded
from appliance.wire.build import response
from appliance.wire.envelope import (
    ENVELOPE,
    Enclosed,
    decode_address,
    decode_principal,
    disclose,
    enclose_answer,
)
from appliance.wire.messages import encode_response


def opened(request: Any) -> tuple[Enclosed, Caller]:
    """Raises PeerError: PRINCIPAL_DESERIALIZATION_FAILURE, INVALID_REQUEST."""
    try:
        kind, name, by_token = decode_principal(request.request_principal or b"")
    except MalformedRequest as cause:
        raise PeerError(errors.PRINCIPAL_DESERIALIZATION_FAILURE, str(cause)) from cause
    try:
        enclosed = disclose(request.request_data)
        address = decode_address(request.client_host_address)
    except MalformedRequest as cause:
        raise PeerError(errors.INVALID_REQUEST, str(cause)) from cause
    return enclosed, Caller(Principal(kind, name), enclosed.client_id, address, "", by_token)


def answer(enclosed: Enclosed, inner: Decision) -> Decision:
    """Wraps the decision of the request in an envelope."""

    def refuse(why: int) -> Answer:
        if why == LOST:  # the broker asks the next controller
            return _envelope(errors.NOT_CONTROLLER, None)
        code, body = inner.refuse(why)
        assert isinstance(body, bytes)
        return _enclosed(enclosed, (code, body))

    assert isinstance(inner.body, bytes), "what comes in an envelope is encoded at once"
    return Decision(*_enclosed(enclosed, (inner.code, inner.body)), refuse)


def whole_answer(enclosed: Enclosed, told: Unencoded) -> tuple[int, bytes]:
    """The envelope with the answer to a request that was decided in parts."""
    return _enclosed(enclosed, (errors.NONE, encode_response(response(*told))))


def refused(code: int) -> Decision:
    """The envelope is not opened."""
    told = _envelope(code, None)
    return Decision(*told, lambda _: told)


def _enclosed(enclosed: Enclosed, told: Answer) -> Answer:
    code, body = told
    if code != errors.NONE:
        return _envelope(code, None)
    return _envelope(errors.NONE, enclose_answer(enclosed, body))


def _envelope(code: int, data: bytes | None) -> Answer:
    values = {"error_code": code, "response_data": data}
    return errors.NONE, encode_response(response(ENVELOPE, 0, values))
