"""Explains the name of an error or an event, with a remedy: `penstock explain`."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from console.model.asking.failure import usage

ERROR: Final = "error of Kafka"
FAILURE: Final = "failure of a command"
EVENT: Final = "event of the log"
_PAGES: Final = {ERROR: "errors", FAILURE: "errors", EVENT: "events"}


@dataclass(slots=True, frozen=True)
class Explained:
    """code: of Kafka's errors, else None. again: clients try again by themselves. remedy: what to
    do; "" where the meaning of an event says it. page: where it stands in the documentation."""

    name: str
    kind: str
    code: int | None
    again: bool
    meaning: str
    remedy: str
    page: str


def everything() -> list[Explained]:
    """All that can be explained: Kafka's errors by number, then failures and events by name."""
    from kio.schema.errors import ErrorCode

    from appliance.base import errors
    from console.model.meanings.errors import FAILURES, MEANINGS
    from console.model.meanings.events import EVENTS

    codes = {k: v for k, v in vars(errors).items() if k.isupper() and isinstance(v, int)}
    found = [
        _one(name, ERROR, meaning, codes[name], again=ErrorCode(codes[name]).retriable)
        for name, meaning in MEANINGS.items()
    ]
    found += [_one(name, FAILURE, meaning) for name, meaning in sorted(FAILURES.items())]
    return found + [_one(name, EVENT, meaning) for name, meaning in sorted(EVENTS.items())]


def explain(asked: str) -> Explained:
    """By a name, written in any way, or the number of one of Kafka's errors. Raises Failure with
    names that are like it."""
    known = everything()
    wanted = _folded(asked)
    for one in known:
        if wanted in (_folded(one.name), "" if one.code is None else str(one.code)):
            return one
    like = get_close_matches(wanted, [_folded(one.name) for one in known])
    names = [one.name for one in known if _folded(one.name) in like]
    said = f"; like it are {', '.join(names)}" if names else ""
    raise usage(
        f"{asked} is not the name of an error or an event{said}",
        "penstock explain lists all of them",
    )


def anchor(name: str) -> str:
    """The anchor of a name on its page."""
    return name.lower()


def _one(
    name: str, kind: str, meaning: str, code: int | None = None, *, again: bool = False
) -> Explained:
    from console.model.meanings.remedies import REMEDIES

    page = f"docs/reference/{_PAGES[kind]}.md#{anchor(name)}"
    return Explained(name, kind, code, again, meaning, REMEDIES.get(name, ""), page)


def _folded(text: str) -> str:
    """As one compares: topic-already-exists, TopicAlreadyExists and its name are the same. A number
    stays one."""
    text = text.strip()
    if text.lstrip("-").isdecimal():
        return str(int(text))
    return "".join(c for c in text.lower() if c.isalnum()).removesuffix("exception")
