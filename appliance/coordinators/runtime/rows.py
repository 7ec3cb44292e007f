"""Rows of an answer that are made while it is encoded, so that a long answer takes many turns.

`rows` gives a list where there are few, else something that `wire.plain` encodes as one. Caller:
decisions and refusals whose requests may be long.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

FEW: Final = 16
"""AnswerRows that are made at once: there may be as many arrays around and within them."""

Make = Callable[[Any], Any]


class AnswerRows:
    """make: gives the plain values of one row from one of the elements."""

    __slots__ = ("_elements", "_make")

    def __init__(self, elements: Sequence[Any], make: Make) -> None:
        self._elements = elements
        self._make = make

    def __len__(self) -> int:
        return len(self._elements)

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, self._elements)


def rows(elements: Sequence[Any], make: Make) -> "list[Any] | AnswerRows":
    """The rows of these elements, made now or when they are encoded."""
    return [make(one) for one in elements] if len(elements) <= FEW else AnswerRows(elements, make)
