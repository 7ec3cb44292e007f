"""The page of errors: Kafka's codes with whether clients try again, and names of our commands' own."""

from typing import Final

from kio.schema.errors import ErrorCode

from appliance.base import errors
from pages.error_meanings import FAILURES, MEANINGS
from pages.markdown import NOTE, code, plain, table

_INTRO: Final = f"""\
# Error codes

{NOTE}

Kafka's, by number, as clients and `penstock` show them. *Again*: a client tries again by itself.
Codes of parts that are not served here are listed because a client's library knows them.
"""
_OURS: Final = """\
## Of commands

Where Kafka has no name for what went wrong, `penstock` has one of its own: with `-o json` it is the field `code` of the error. What lines of the log mean,
[events](events.md) says.
"""


def codes() -> dict[int, str]:
    """Every code → its name, by number."""
    named = {v: k for k, v in vars(errors).items() if k.isupper() and isinstance(v, int)}
    return dict(sorted(named.items()))


def text() -> str:
    """All of it, as Markdown."""
    rows = [
        (
            str(number),
            code(name),
            "again" if ErrorCode(number).retriable else "",
            plain(MEANINGS[name]),
        )
        for number, name in codes().items()
    ]
    ours = [(code(name), plain(meaning)) for name, meaning in sorted(FAILURES.items())]
    return "\n".join(
        (
            _INTRO,
            table(("code", "name", "again", "meaning"), rows),
            _OURS,
            table(("name", "meaning"), ours),
        )
    )
