r"""Formats of records, `-f`: what consume prints and what produce reads.

%k key  %v value (also %s)  %o offset  %p partition  %t topic  %T timestamp in ms
%h headers a=b,c=d  %K %V (%S) lengths of key and value, -1 for null  %% percent  \n \t \\ \xNN
"""

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from console.model.asking.failure import usage
from console.model.records.reading import Record

_ESCAPE: Final = re.compile(r"\\(n|t|r|0|\\|x[0-9A-Fa-f]{2})")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_READABLE: Final = {"k": "key", "v": "value", "s": "value", "p": "partition", "h": "headers"}

Headers = list[tuple[str, bytes | None]]
Piece = bytes | Callable[[Record], bytes]


def _headers(record: Record) -> bytes:
    return b",".join(key.encode() + b"=" + (value or b"") for key, value in record.headers)


def _length(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))


_PRINTERS: Final[dict[str, Callable[[Record], bytes]]] = {
    "k": lambda r: r.key or b"",
    "v": lambda r: r.value or b"",
    "s": lambda r: r.value or b"",
    "o": lambda r: b"%d" % r.offset,
    "p": lambda r: b"%d" % r.partition,
    "t": lambda r: r.topic.encode(),
    "T": lambda r: b"%d" % (-1 if r.timestamp is None else r.timestamp),
    "h": _headers,
    "K": lambda r: _length(r.key),
    "V": lambda r: _length(r.value),
    "S": lambda r: _length(r.value),
}


def printer(text: str) -> Callable[[Record], bytes]:
    """Record → bytes. Raises Failure (USAGE) for an unknown letter."""
    pieces: list[Piece] = []
    for literal, letter in _split(text):
        if literal:
            pieces.append(literal)
        if letter:
            if letter not in _PRINTERS:
                raise usage(f"-f: %{letter} is not known", f"known are %{' %'.join(_PRINTERS)} %%")
            pieces.append(_PRINTERS[letter])

    def format_record(record: Record) -> bytes:
        return b"".join([p if isinstance(p, bytes) else p(record) for p in pieces])

    return format_record


def reader(text: str) -> Callable[[bytes], dict[str, Any] | None]:
    """Line → its fields (key, value, partition, headers), None when the line does not fit.

    Raises Failure (USAGE) for a format that cannot be read back."""
    pattern, fields = b"", []
    for literal, letter in _split(text.removesuffix("\\n")):
        pattern += re.escape(literal)
        if letter:
            if letter not in _READABLE or _READABLE[letter] in fields:
                raise usage(f"-f: %{letter} cannot be read here", "%k %v %p %h, each once")
            fields.append(_READABLE[letter])
            pattern += rb"(\d+)" if letter == "p" else rb"(.*?)"
    if "value" not in fields:
        raise usage(f"-f {text!r} has no %v", "for example -f '%k,%v'")
    compiled = re.compile(pattern, re.DOTALL)

    def read(line: bytes) -> dict[str, Any] | None:
        match = compiled.fullmatch(line)
        if match is None:
            return None
        found: dict[str, Any] = dict(zip(fields, match.groups(), strict=True))
        if "partition" in found:
            found["partition"] = int(found["partition"])
        if "headers" in found:
            found["headers"] = parse_headers(map(os.fsdecode, found["headers"].split(b",")))
        return found

    return read


def parse_headers(items: Iterable[str]) -> Headers:
    """`KEY=VALUE` texts; no `=` is a null value. Raises Failure (USAGE) for a key that is no
    UTF-8; a value keeps its bytes."""
    found: Headers = []
    for item in items:
        if item:
            key, equals, value = item.partition("=")
            try:
                key.encode()
            except UnicodeEncodeError:
                name = ascii(os.fsencode(key))[2:-1]
                raise usage(f"the header's name {name} is not UTF-8") from None
            found.append((key, os.fsencode(value) if equals else None))
    return found


def unescape(text: str) -> bytes:
    r"""The bytes of a text with \n, \t, \xNN."""

    def one(match: re.Match[str]) -> str:
        found = match[1]
        return chr(int(found[1:], 16)) if found[0] == "x" else _ESCAPES[found]

    if "\\x" in text:
        return _ESCAPE.sub(one, text).encode("latin-1", "replace")
    return _ESCAPE.sub(one, text).encode()


def _split(text: str) -> list[tuple[bytes, str]]:
    """[(literal, letter of the conversion behind it or "")]"""
    found: list[tuple[bytes, str]] = []
    literal = ""
    at = 0
    while at < len(text):
        if text[at] != "%":
            literal += text[at]
            at += 1
            continue
        letter = text[at + 1 : at + 2]
        if not letter:
            raise usage(f"-f {text!r} ends with a single %", "%% prints a percent sign")
        if letter == "%":
            literal += "%"
        else:
            found.append((unescape(literal), letter))
            literal = ""
        at += 2
    if literal:
        found.append((unescape(literal), ""))
    return found
