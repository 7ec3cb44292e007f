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
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return (
            f"the length of '{name[:1000]}' is longer than the max allowed length {MAX_NAME_LENGTH}"
        )
    if not _LEGAL.match(name):
        allowed = "ASCII alphanumerics, '.', '_' and '-'"
        return f"'{name}' contains one or more characters other than {allowed}"
    return ""


class Collisions:
    """Which of these names give the same metric name: '.' and '_' are one there.

    The names are gone through once, when the first name that can collide is asked for.
    """

    __slots__ = ("_added", "_folded", "_names")

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names
        self._added: list[str] = []
        self._folded: dict[str, str] | None = None

    def with_name(self, name: str) -> str | None:
        """Another name that collides with this one, or None."""
        if "." not in name and "_" not in name:
            return None
        if self._folded is None:
            self._folded = {one.replace(".", "_"): one for one in self._names}
            self._folded |= {one.replace(".", "_"): one for one in self._added}
        other = self._folded.get(name.replace(".", "_"))
        return other if other != name else None

    def add(self, name: str) -> None:
        """One name more."""
        if self._folded is None:
            self._added.append(name)
        else:
            self._folded[name.replace(".", "_")] = name
