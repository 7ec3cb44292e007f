"""Answers of which nothing came true, made of those that would have been given. Called by
`admin_requests.py`.
"""

from collections.abc import Mapping
from typing import Any, Final

from appliance.base import errors

_OF_A_TOKEN: Final = {
    "issue_timestamp": -1, "expiry_timestamp": -1, "max_timestamp": -1, "token_id": "", "hmac": b"",
}  # fmt: skip


def refused(
    values: Mapping[str, Any],
    text: str,
    code: int = errors.KAFKA_STORAGE_ERROR,
    *,
    whole: bool = False,
) -> dict[str, Any]:
    """An answer of which nothing came true: whatever had no error has one that can be retried.
    whole: what had an error has that one, too: it was judged by who may not judge, or over what
    never was."""

    def show_value(key: str, value: Any, row: Mapping[str, Any]) -> Any:
        if key == "error_code" and (whole or value == errors.NONE):
            return code
        if key == "error_message" and (whole or row.get("error_code") == errors.NONE):
            return text
        if key in ("producer_id", "producer_epoch"):
            return -1  # nobody was given one
        if key in _OF_A_TOKEN:
            return _OF_A_TOKEN[key]  # nor such a token
        if isinstance(value, Mapping):
            return refused(value, text, code, whole=whole)
        if isinstance(value, list | tuple):
            return [
                refused(one, text, code, whole=whole) if isinstance(one, Mapping) else one
                for one in value
            ]
        return value

    return {key: show_value(key, value, values) for key, value in values.items()}
