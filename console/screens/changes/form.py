"""Input forms before a proposal: fields with their mistakes.

Nothing here knows a widget. What was typed outlives a failure, a lost broker and Escape: it goes
when the change is done.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from console.model.asking.change import Proposal

TEXT: Final = "text"
LINES: Final = "lines"
FLAG: Final = "flag"
YES: Final = "yes"
"""The value of a FLAG that is set; "" is that of one that is not."""

_DIGITS: Final = 10
Values = Mapping[str, str]


def _right(text: str) -> str:
    return ""


@dataclass(slots=True, frozen=True)
class Field:
    """key: in Values. value: what stands there at first. hint: stands where nothing is typed.
    about: a sentence for who is in it. kind: TEXT, LINES (several lines) or FLAG. choices: what may
    be typed, where that is a list. lines: how many of LINES are seen. check: a sentence about what
    is wrong, "" when nothing is."""

    key: str
    title: str
    value: str = ""
    hint: str = ""
    about: str = ""
    kind: str = TEXT
    choices: tuple[str, ...] = ()
    lines: int = 8
    check: Callable[[str], str] = _right

    def wrong(self, text: str) -> str:
        """The mistake in the typed text, "" when there is none."""
        if self.choices and text and text not in self.choices:
            return f"one of {', '.join(self.choices)}"
        return self.check(text)


@dataclass(slots=True, frozen=True)
class Form:
    """title: also what its draft is kept by. propose: what is wanted by what was typed; raises
    Failure for what is wrong in several fields together. about: a sentence above them. preview: of
    what is typed, shown below."""

    title: str
    fields: tuple[Field, ...]
    propose: Callable[[Values], Proposal]
    about: str = ""
    preview: Callable[[Values], str] | None = None

    def wrong(self, values: Values) -> dict[str, str]:
        """Key → what is wrong in that field."""
        found = {one.key: one.wrong(values[one.key]) for one in self.fields}
        return {key: words for key, words in found.items() if words}


def count(text: str) -> str:
    """Check: nothing, or a whole number of 1 and more."""
    typed = text.strip()
    right = not typed or (typed.isdecimal() and len(typed) < _DIGITS and int(typed) >= 1)
    return "" if right else "a whole number, 1 or more"


def needed(text: str) -> str:
    """Check: something is typed."""
    return "" if text.strip() else "something must be typed here"
