"""The page of errors: Kafka's codes with whether clients try again, and names of our commands' own."""

from typing import Final

from appliance.base import errors
from console.model.asking.explaining import ERROR, EVENT, Explained, everything
from pages.markdown import NOTE, anchored, plain, table

_INTRO: Final = f"""\
# Error codes

{NOTE}

Kafka's, by number, as clients and `penstock` show them. *Again*: a client tries again by itself.
`penstock explain NAME` says the same at a terminal. Codes of parts that are not served here are listed because a
client's library knows them.
"""
_OURS: Final = """\
## Of commands

Where Kafka has no name for what went wrong, `penstock` has one of its own: in brackets behind the text, with `-o json`
the field `code` of the error. What lines of the log mean, [events](events.md) says.
"""


def codes() -> dict[int, str]:
    """Every code → its name, by number."""
    named = {v: k for k, v in vars(errors).items() if k.isupper() and isinstance(v, int)}
    return dict(sorted(named.items()))


def text() -> str:
    """All of it, as Markdown."""
    known = everything()
    rows = [
        (str(one.code), anchored(one.name), "again" if one.again else "", *_told(one))
        for one in known
        if one.kind == ERROR
    ]
    ours = [(anchored(one.name), *_told(one)) for one in known if one.kind not in (ERROR, EVENT)]
    return "\n".join(
        (
            _INTRO,
            table(("code", "name", "again", "meaning", "what to do"), rows),
            _OURS,
            table(("name", "meaning", "what to do"), ours),
        )
    )


def _told(one: Explained) -> tuple[str, str]:
    return plain(one.meaning), plain(one.remedy)
