"""Helpers that the answers of this room share."""

from typing import Any

from appliance.base import errors
from appliance.coordinators.runtime.call import Call


def answered(code: int, **more: Any) -> dict[str, Any]:
    """An answer that carries one error code. Without more there is no producer."""
    values = {"throttle_time": 0, "error_code": code, "producer_id": -1, "producer_epoch": -1}
    return values | more


def code_for(code: int, call: Call, fenced_since: int) -> int:
    """The code in a version that this client knows: older ones have no PRODUCER_FENCED."""
    if code == errors.PRODUCER_FENCED and call.version < fenced_since:
        return errors.INVALID_PRODUCER_EPOCH
    return code
