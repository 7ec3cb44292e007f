"""JSON that stays as it was written: read without rounding, laid out anew without being rewritten.

Whatever is shown is cut out of the text itself, so that numbers of any size, decimals, escapes and
repeated keys are those of whoever wrote it. Times are linear in the length of the text.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any, Final

_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_TOKENS: Final = re.compile(rf"{_STRING}|[{{}}\[\],:]|[^\s{{}}\[\],:\"]++", re.DOTALL)
_SPACES: Final = re.compile(rf"({_STRING})|\s++", re.DOTALL)
_BREAKS: Final = re.compile(r"[\r\n\t]")
_LONGEST_INT: Final = 640
"""Digits of a whole number that Python makes an integer of at once."""
_INDENT: Final = "  "
_DEEPEST: Final = 40
"""Levels that are indented: further ones would fill the screen with spaces."""


class Number(float):
    """A number as it was written: to compare it is a float, `str` gives back its letters."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> "Number":
        """written: JSON's notation."""
        # What a float is made of is what a float can hold; the rest is kept beside it.
        made = super().__new__(cls, written if len(written) <= _LONGEST_INT else "nan")
        made.written = written
        return made

    def __str__(self) -> str:
        return self.written

    __repr__ = __str__


def parse(text: str) -> Any:
    """JSON as dict, list, str, int, Number, bool and None. Raises ValueError, also for what is
    nested too deeply."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole(written: str) -> int | Number:
    return int(written) if len(written) <= _LONGEST_INT else Number(written)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_DECODER: Final = json.JSONDecoder(
    parse_float=Number, parse_int=_whole, parse_constant=_no_constant
)


def compact(text: str) -> str:
    """JSON in one line. Nothing but space between its parts goes, and only when it has line
    breaks."""
    return _SPACES.sub(r"\1", text) if _BREAKS.search(text) else text


def indented(text: str) -> Iterator[str]:
    """The lines of valid JSON, indented; empty objects and arrays stay in their line."""
    depth, line = 0, ""
    before = ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in "}]":
            depth -= 1
            if before in ("{", "["):
                line += token
            else:
                yield line
                line = _margin(depth) + token
        else:
            if before in ("{", "[", ","):
                yield line
                line = _margin(depth)
            line += ": " if token == ":" else token
            if token in "{[":
                depth += 1
        before = token
    yield line


def _margin(depth: int) -> str:
    return _INDENT * min(depth, _DEEPEST)


class Pairs(list[tuple[Any, Any]]):
    """The keys and values of an object, in order, whatever they are and however often."""


def written(value: Any, most: int, tell: Callable[[Any], str] = str) -> str:
    """JSON of what a decoder has made: None, bool, int, float, str, bytes, list or tuple, dict or
    Pairs, whatever they are nested in; keys that are no text are written as text. tell: text for
    values of other types. Raises ValueError for more than `most` parts."""
    out: list[str] = []
    open_ones: list[tuple[Iterator[tuple[str, Any]], str]] = []
    head, item = "", value
    while True:
        if len(out) > most:
            raise ValueError(f"it has more than {most} parts")
        if isinstance(item, Mapping | Pairs):
            out.append(head + "{")
            open_ones.append((_members(item, tell), "}"))
        elif isinstance(item, list | tuple):
            out.append(head + "[")
            open_ones.append((_elements(item), "]"))
        else:
            out.append(head + _scalar(item, tell))
        while open_ones:
            found = next(open_ones[-1][0], None)
            if found is not None:
                head, item = found
                break
            out.append(open_ones.pop()[1])
        else:
            return "".join(out)


def _members(
    item: Mapping[Any, Any] | Pairs, tell: Callable[[Any], str]
) -> Iterator[tuple[str, Any]]:
    between = ""
    for key, value in item.items() if isinstance(item, Mapping) else item:
        yield f"{between}{_key(key, tell)}: ", value
        between = ", "


def _elements(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    between = ""
    for item in items:
        yield between, item
        between = ", "


def _key(key: Any, tell: Callable[[Any], str]) -> str:
    if isinstance(key, list | tuple | Mapping):
        return encode_basestring(repr(key))
    text = _scalar(key, tell)
    return text if text.startswith('"') else encode_basestring(text)


def _scalar(value: Any, tell: Callable[[Any], str]) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, bytes):
        return f'"0x{value.hex()}"'
    if isinstance(value, float) and not isinstance(value, Number):
        finite = value - value == 0  # JSON knows no infinity
        return repr(value) if finite else f'"{value}"'
    if isinstance(value, int | Number):
        return str(value)
    return encode_basestring(tell(value))
