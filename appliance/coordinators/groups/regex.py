"""Regular expressions over topic names (KIP-848), in the syntax of RE2 and in bounded time.

An expression comes from a client and is held against every topic: an engine that backtracks could
be made to run for years. The engine is loaded when the first group asks for one. Caller:
`consumer_target`, `consumer_heartbeat`.
"""

from collections.abc import Collection, Iterable
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
    options.never_capture = True
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


def check_work(expression: str, names: Collection[str], most: int) -> None:
    """Raises PeerError(INVALID_REGULAR_EXPRESSION) for an expression that is none, or that takes
    too much for so many names."""
    work = count_work(expression, names)
    if work > most:
        raise PeerError(
            INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression[:200]}` takes {work} steps over the names of "
            f"{len(names)} topics; at most {most} are taken (penstock.group.regex.max.steps)."
            " Use fewer repetitions, or name the topics.",
        )


def count_work(expression: str, names: Collection[str]) -> int:
    """The steps that it takes at most to hold these names against an expression: instructions of
    its program times letters, because RE2 is linear in the text, but each letter may take the whole
    program. Raises PeerError."""
    size: int = compiled(expression).programsize
    return size * sum(map(len, names))


def matching(expression: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the whole expression fits, from their first to their last letter, sorted.
    Callers know that it isn't too much work."""
    fits = compiled(expression).fullmatch
    return tuple(sorted(name for name in names if fits(name)))
