"""Which topic names exist: Kafka's rules, because a name becomes a folder and a metric."""

import re
from collections.abc import Iterable
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.base.ids import METADATA_TOPIC

MAX_NAME_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+\Z")


def check_topic_name(name: str) -> None:
    """Raises PeerError(INVALID_TOPIC_EXCEPTION) saying what is wrong and what is allowed."""
    wrong = _what_is_wrong(name)
    if wrong:
        raise PeerError(
            errors.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: {wrong}. A name has 1 to {MAX_NAME_LENGTH} characters out of"
            " a-z, A-Z, 0-9, '.', '_' and '-', and is neither '.' nor '..'.",
        )
    if name == METADATA_TOPIC:
        raise PeerError(
            errors.TOPIC_AUTHORIZATION_FAILED,
            f"{METADATA_TOPIC} is the cluster's own log and cannot be created;"
            " choose another name.",
        )


def _what_is_wrong(name: str) -> str:
    if not name:
        return "the empty string is illegal"
    if name in (".", ".."):
        return f"'{name}' is illegal"
    if len(name) > MAX_NAME_LENGTH:
        return f"its length {len(name)} exceeds the limit of {MAX_NAME_LENGTH}"
    if not _LEGAL.match(name):
        return f"{name[:80]!r} contains an illegal character"
    return ""


def collision(name: str, others: Iterable[str]) -> str | None:
    """Another name that gives the same metric name ('.' and '_' are one there), or None."""
    if "." not in name and "_" not in name:
        return None
    folded = name.replace(".", "_")
    length = len(name)
    for other in others:
        if len(other) == length and other != name and other.replace(".", "_") == folded:
            return other
    return None
