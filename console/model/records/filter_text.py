"""Record filters: the grammar of the filter box and of `consume --filter`.

    FILTER := TERM …                      all of them must hold
    TERM   := [!] [FIELD:] TEST           !: it must not hold
    FIELD  := key | value | header | header.NAME | partition
    TEST   := word                        these letters are in it, whatever their case
            | "words"                     the same with this case; \\" and \\\\ within
            | /expression/ | /…/i         RE2's syntax, with this case or whatever the case
            | null                        behind a FIELD: there is no key, value, header's value
            | PATH [OP LITERAL]           it is JSON with that in it
            | 0,3-5                       behind partition: these
    PATH   := $ then .name ["any name"] [0] [-1] [*]     [*]: any element
    OP     := = != < <= > >= ~            ~: these letters, or this /expression/, are in the text
    LITERAL:= number | word | "text" | true | false | null | /expression/

Without a FIELD a text is looked for in key, value and headers (names and values), and a PATH in the
value. Numbers are compared exactly, whatever their size; a number and a text are never equal.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from console.model.asking.failure import Failure, usage
from console.model.records.json_path import Step, number

ANYWHERE: Final = ""
KEY, VALUE, HEADER, PARTITION = "key", "value", "header", "partition"
OPERATORS: Final = ("!=", "<=", ">=", "==", "=", "<", ">", "~")
GRAMMAR: Final = 'word "Exact words" /regex/i key:… header.NAME:… partition:0,3 $.a.b = 5 !…'
_FIELD: Final = re.compile(r"(key|value|partition|header(?:\.[^\s:\"/]+)?):")
_BLANK: Final = re.compile(r"\s*")
_BARE: Final = re.compile(r"\S+")
_NAME: Final = re.compile(r"\.([^\s.\[\]=!<>~\"]+)")
_INDEX: Final = re.compile(r"\[\s*(-?\d{1,18}|\*)\s*\]")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_SPAN: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


@dataclass(slots=True, frozen=True)
class Text:
    """Letters that are in it. exact: with their case."""

    words: str
    exact: bool


@dataclass(slots=True, frozen=True)
class Regex:
    """An expression of RE2."""

    expression: str
    any_case: bool


Literal = bool | int | Decimal | str | None | Text | Regex


@dataclass(slots=True, frozen=True)
class Null:
    """There is nothing."""


@dataclass(slots=True, frozen=True)
class Compare:
    """A condition on the JSON at a path. operator: one of OPERATORS, "" when it must only be
    there.
    """

    path: tuple[Step, ...]
    operator: str = ""
    literal: Literal = None


@dataclass(slots=True, frozen=True)
class Partitions:
    """Spans of numbers, both ends included."""

    spans: tuple[tuple[int, int], ...]


Test = Text | Regex | Null | Compare | Partitions


@dataclass(slots=True, frozen=True)
class Term:
    """field: ANYWHERE, KEY, VALUE, HEADER, PARTITION. header: its name, "" for all of them."""

    field: str
    header: str
    test: Test
    negated: bool


def parse_filter(text: str) -> list[Term]:
    """The terms of a filter, none of an empty one. Raises Failure (USAGE), which says what is wrong
    at which character."""
    reader = _Reader(text)
    terms = []
    while not reader.at_end():
        terms.append(reader.term())
    return terms


def compiled(test: Regex) -> Any:
    """RE2's object, which looks for it in time linear to what it looks through. Raises ValueError
    with RE2's words."""
    import re2  # a C++ library, loaded when there is an expression

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = not test.any_case
    try:
        return re2.compile(test.expression, options)
    except re2.error as cause:
        why = cause.args[0] if cause.args else ""
        raise ValueError(why.decode(errors="replace") if isinstance(why, bytes) else why) from None


class _Reader:
    """Goes through the text once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def at_end(self) -> bool:
        """True if only blanks follow."""
        self._skip(_BLANK)
        return self._at == len(self._text)

    def term(self) -> Term:
        negated = self._take("!")
        if negated and (self._at == len(self._text) or self._text[self._at].isspace()):
            raise self._wrong("! is followed by nothing", self._at - 1)
        began = self._at
        found = self._skip(_FIELD)
        field, _, header = (found[1] if found else ANYWHERE).partition(".")
        test = self._partitions() if field == PARTITION else self._test(field)
        if isinstance(test, Compare) and field == HEADER and not header:
            raise self._wrong("JSON in a header needs its name: header.NAME:$.a", began)
        return Term(field, header, test, negated)

    def _test(self, field: str) -> Test:
        began = self._at
        if self._next() == '"' or self._next() == "/":
            return self._quoted() if self._next() == '"' else self._regex()
        if re.match(r"\$(?=[.\[])|\$(?=\s*(?:[=<>~]|!=))", self._text[self._at :]):
            return self._compare()
        found = self._skip(_BARE)
        if found is None:
            raise self._wrong(f"{field}: is followed by nothing", began)
        if found[0] == "null" and field:
            return Null()
        return Text(found[0], exact=False)

    def _quoted(self) -> Text:
        began = self._at
        self._at += 1
        words = ""
        while self._next() != '"':
            if self._next() == "\\" and self._at + 1 < len(self._text):
                self._at += 1
            if not self._next():
                raise self._wrong('" has no second one', began)
            words += self._next()
            self._at += 1
        self._at += 1
        return Text(words, exact=True)

    def _regex(self) -> Regex:
        began = self._at
        end = began + 1
        while end < len(self._text) and self._text[end] != "/":
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            raise self._wrong('/ has no second one; a path is quoted: "/a/b"', began)
        self._at = end + 1
        any_case = self._take("i")
        if self._next() and not self._next().isspace():
            raise self._wrong("only i may follow /expression/, then a blank", self._at)
        found = Regex(self._text[began + 1 : end], any_case)
        try:
            compiled(found)
        except ValueError as problem:
            raise self._wrong(f"not an expression of RE2: {problem}", began) from None
        return found

    def _compare(self) -> Compare:
        self._at += 1
        path: list[Step] = []
        while self._next() and self._next() in ".[":
            path.append(self._step())
        after = self._at
        self._skip(_BLANK)
        operator = next((one for one in OPERATORS if self._take(one)), "")
        if not operator:
            self._at = after
            if self._next() and not self._next().isspace():
                raise self._wrong(f"a path continues with . or [, or {' '.join(OPERATORS)}", after)
            return Compare(tuple(path))
        self._skip(_BLANK)
        return Compare(tuple(path), "=" if operator == "==" else operator, self._literal(operator))

    def _step(self) -> Step:
        began = self._at
        found = self._skip(_NAME)
        if found is not None:
            return found[1]
        found = self._skip(_INDEX)
        if found is not None:
            return None if found[1] == "*" else int(found[1])
        if self._take("[") and self._next() == '"':
            name = self._quoted().words
            if self._take("]"):
                return name
        raise self._wrong('a step of a path is .name, ["any name"], [0], [-1] or [*]', began)

    def _literal(self, operator: str) -> Literal:
        began = self._at
        if self._next() == '"':
            return self._quoted() if operator == "~" else self._quoted().words
        if operator == "~" and self._next() == "/":
            return self._regex()
        found = self._skip(_BARE)
        if found is None:
            raise self._wrong(f"{operator} is followed by nothing", began)
        word = found[0]
        if operator == "~":
            return Text(word, exact=False)
        if word in _WORDS:
            if operator not in ("=", "!="):
                raise self._wrong(f"nothing is greater or less than {word}", began)
            return _WORDS[word]
        if not _NUMBER.fullmatch(word):
            return word
        try:
            return number(word)
        except ValueError as problem:
            raise self._wrong(str(problem), began) from None

    def _partitions(self) -> Partitions:
        began = self._at
        found = self._skip(_BARE)
        spans = []
        for item in (found[0] if found else "").split(","):
            span = _SPAN.fullmatch(item)
            if span is None or int(span[1]) > int(span[2] or span[1]):
                raise self._wrong("partition: goes with numbers, for example 0,3-5", began)
            spans.append((int(span[1]), int(span[2] or span[1])))
        return Partitions(tuple(spans))

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, word: str) -> bool:
        there = self._text.startswith(word, self._at)
        self._at += len(word) if there else 0
        return there

    def _skip(self, what: "re.Pattern[str]") -> "re.Match[str] | None":
        found = what.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _wrong(self, why: str, at: int) -> Failure:
        return usage(f"the filter, character {at + 1}: {why}", f"for example {GRAMMAR}")
