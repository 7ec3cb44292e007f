"""Filters at work: terms become one function of a record's bytes.

Nothing here is per character: substrings go by the C library's search, expressions by RE2, which is
linear in what it looks through; JSON is parsed only where the names and texts that must be in it
are there.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from console.model.records.filter_text import (
    ANYWHERE,
    HEADER,
    KEY,
    VALUE,
    Compare,
    Null,
    Partitions,
    Regex,
    Term,
    Test,
    Text,
    compiled,
    parse_filter,
)  # fmt: skip
from console.model.records.json_path import found_at, loaded

Headers = Sequence[tuple[str, bytes | None]]
Looks = Callable[[bytes | None], bool]
Keeps = Callable[[bytes | None, bytes | None, Headers], bool]
_CHEAP: Final = (Null, Text, Regex, Compare)
"""What is looked at first."""


class Filter:
    """A filter of records. reads_headers: whether it needs their headers."""

    def __init__(self, text: str = "") -> None:
        """Raises Failure (USAGE) for what is no filter."""
        self.text = text.strip()
        terms = parse_filter(self.text)
        self._partitions = [one for one in terms if isinstance(one.test, Partitions)]
        rest = [one for one in terms if not isinstance(one.test, Partitions)]
        rest.sort(key=lambda one: _CHEAP.index(type(one.test)))
        self.reads_headers = any(
            one.field == HEADER or (one.field == ANYWHERE and not isinstance(one.test, Compare))
            for one in rest
        )
        self._terms = [_of(one) for one in rest]

    def partition(self, number: int) -> bool:
        """True if records of this partition can pass."""
        return all(
            _within(number, one.test) is not one.negated
            for one in self._partitions
            if isinstance(one.test, Partitions)
        )

    def keeps(self, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        """True if the record passes."""
        return all(term(key, value, headers) for term in self._terms) if self._terms else True

    def __bool__(self) -> bool:
        """True if it filters by anything but partitions."""
        return bool(self._terms)


def _within(number: int, test: Partitions) -> bool:
    return any(low <= number <= high for low, high in test.spans)


def _of(term: Term) -> Keeps:
    looks = _looks(term.test)
    wanted = not term.negated
    if term.field == VALUE or (term.field == ANYWHERE and isinstance(term.test, Compare)):
        return lambda key, value, headers: looks(value) is wanted
    if term.field == KEY:
        return lambda key, value, headers: looks(key) is wanted
    if term.field == HEADER:
        found = _in_header(term.header, looks)
        return lambda key, value, headers: found(headers) is wanted
    assert term.field == ANYWHERE
    in_headers = _in_header("", looks)
    return lambda key, value, headers: (looks(value) or looks(key) or in_headers(headers)) is wanted


def _in_header(name: str, looks: Looks) -> Callable[[Headers], bool]:
    if name:
        return lambda headers: any(looks(value) for one, value in headers if one == name)
    return lambda headers: any(
        looks(value) or looks(one.encode(errors="surrogateescape")) for one, value in headers
    )


def _looks(test: Test) -> Looks:
    if isinstance(test, Null):
        return lambda data: data is None
    if isinstance(test, Text):
        return _text(test)
    if isinstance(test, Regex):
        search = compiled(test).search
        return lambda data: data is not None and search(data) is not None
    assert isinstance(test, Compare)
    return _json(test)


def _text(test: Text) -> Looks:
    exact = test.words.encode(errors="surrogateescape")
    if test.exact or not any(char.isalpha() for char in test.words):
        return lambda data: data is not None and exact in data
    if test.words.isascii():
        low = exact.lower()
        return lambda data: data is not None and low in data.lower()
    import re2

    search = compiled(Regex(re2.escape(test.words), any_case=True)).search
    return lambda data: data is not None and search(data) is not None


def _json(test: Compare) -> Looks:
    # Whoever writes JSON may write any letter by its number: then nothing is said by its bytes.
    must = [step.encode(errors="replace") for step in test.path if isinstance(step, str)]
    if test.operator == "=" and isinstance(test.literal, str):
        must.append(test.literal.encode(errors="replace"))
    holds = _holds(test)
    path = test.path

    def looks(data: bytes | None) -> bool:
        if data is None or (b"\\" not in data and not all(one in data for one in must)):
            return False
        try:
            return any(map(holds, found_at(path, loaded(data))))
        except ValueError:
            return False

    return looks


def _holds(test: Compare) -> Callable[[Any], bool]:
    literal = test.literal
    if not test.operator:
        return lambda value: True
    if test.operator == "~":
        assert isinstance(literal, Text | Regex)
        looks = _looks(literal)
        return lambda value: isinstance(value, str) and looks(value.encode(errors="replace"))
    if test.operator == "=":
        return lambda value: _equal(value, literal)
    if test.operator == "!=":
        return lambda value: not _equal(value, literal)
    order = _ORDERS[test.operator]
    kind = _kind(literal)
    return lambda value: _kind(value) is kind and order(value, literal)


def _kind(value: Any) -> type | None:
    """Numbers are one kind; so True is not 1."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | Decimal):
        return int
    return str if isinstance(value, str) else None


def _equal(value: Any, literal: Any) -> bool:
    if literal is None or isinstance(literal, bool):
        return value is literal
    return _kind(value) is _kind(literal) and bool(value == literal)


_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
