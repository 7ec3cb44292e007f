"""Regular expressions over topic names (KIP-848), in the syntax of RE2 and in linear time.

An expression comes from a client and is held against every topic: an engine that backtracks could
be made to run for years. The engine is loaded when the first group asks for one. Caller:
`consumer_target`, `consumer_heartbeat`.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from appliance.base.errors import INVALID_REGULAR_EXPRESSION, PeerError

_KAFKAS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
"""What is wrong in the words of the engine here → in those of Kafka's."""
_MEMORY: Final = 1 << 20
"""Bytes that one compiled expression may take."""


@lru_cache(maxsize=256)
def compiled(expression: str) -> Any:
    """Raises PeerError(INVALID_REGULAR_EXPRESSION)."""
    import re2  # a C++ library: most appliances never see an expression

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(expression, options)
    except re2.error as cause:
        why = cause.args[0] if cause.args else ""
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        what, _, where = text.partition(": ")
        raise PeerError(
            INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression[:200]}` is not a valid regular expression: "
            f"{_KAFKAS.get(what, what)}. It must be one of RE2; wrong is {where or what!r}.",
        ) from cause


def matching(expression: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the whole expression fits, from their first to their last letter, sorted."""
    fits = compiled(expression).fullmatch
    return tuple(sorted(name for name in names if fits(name)))
