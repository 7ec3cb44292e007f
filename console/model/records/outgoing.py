"""One record to be written: what somebody typed as bytes, the bytes of a record as something to be
edited, and the command that writes the same.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.model.asking.failure import usage
from console.model.decoding import json_text
from console.model.decoding.message_pack import packed
from console.model.records.reading import Record
from console.model.records.scan import UNREADABLE

TEXT, JSON, HEX, BASE64, MSGPACK = ENCODINGS = ("text", "json", "hex", "base64", "msgpack")
"""How bytes are typed. json: text that is checked; msgpack: JSON that is written as MessagePack."""

Header = tuple[str, bytes | None]
MOST_TYPED: Final = 16 << 10
"""Bytes of what can be edited, or be a part of a command line."""
_BYTES: Final = "hex:"
VALUE_FILE: Final = "value.bin"
_BLANKS: Final = re.compile(r"\s+")


@dataclass(slots=True, frozen=True)
class Outgoing:
    """A record to be written. partition: None for the one that its key says. key, value: None for
    null."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int | None = None


def encoded(text: str, encoding: str) -> bytes:
    """The bytes of what was typed. Raises Failure (USAGE)."""
    try:
        if encoding == HEX:
            return bytes.fromhex(_BLANKS.sub("", text).removeprefix("0x"))
        if encoding == BASE64:
            return base64.b64decode(_BLANKS.sub("", text), validate=True)
        if encoding == MSGPACK:
            return packed(text)
        if encoding == JSON:
            json_text.parse(text)
        return text.encode()
    except (binascii.Error, ValueError) as wrong:
        raise usage(f"not valid {encoding}: {wrong}") from None


def typed(data: bytes) -> tuple[str, str]:
    """(text, encoding) from which exactly these bytes come again: text where somebody can type it,
    else hexadecimal digits."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex(), HEX
    if all(line.isprintable() for line in text.split("\n")):
        return text, TEXT
    return data.hex(), HEX


def header_lines(headers: Sequence[Header]) -> list[str]:
    """A line for each header, as `name=value`, `name` for a null value, `name=hex:…` for bytes."""
    found = []
    for name, value in headers:
        if value is None:
            found.append(name)
            continue
        text, encoding = typed(value)
        is_bytes = encoding == HEX or "\n" in text or text.startswith(_BYTES)
        found.append(f"{name}={_BYTES}{value.hex()}" if is_bytes else f"{name}={text}")
    return found


def headers_of(lines: str, before: Sequence[Header] = ()) -> tuple[Header, ...]:
    """The headers of lines that were typed, in their order. before: those that the lines were made
    of, which are kept as they are where their line is. Raises Failure (USAGE)."""
    known: dict[str, list[Header]] = {}
    for line, header in zip(header_lines(before), before, strict=True):
        known.setdefault(line, []).append(header)
    found = []
    for line in lines.split("\n"):
        if kept := known.get(line):
            found.append(kept.pop(0))
        elif line:
            found.append(_header(line))
    return tuple(found)


def _header(line: str) -> Header:
    name, equals, value = line.partition("=")
    if not equals:
        return name, None
    if value.startswith(_BYTES):
        return name, encoded(value.removeprefix(_BYTES), HEX)
    return name, value.encode()


def tombstone(record: Record) -> Outgoing:
    """The tombstone of a record's key, in the record's own partition, wherever that key goes now.
    Raises Failure for a record without a key.
    """
    if record.key is None:
        raise usage(
            "this record has no key, so nothing can say that its key is gone",
            "penstock topic trim deletes old records",
        )
    return Outgoing(record.topic, record.key, None, (), record.partition)


def words(one: Outgoing) -> tuple[str, ...]:
    """The command that writes the same, behind `penstock`. A value too long for it is named as a
    file."""
    found = ["produce", one.topic]
    if one.partition is not None:
        found += ["-p", str(one.partition)]
    if one.key is not None:
        text, encoding = typed(one.key)
        found += ["-k", text, *(["--key-encoding", encoding] if encoding != TEXT else [])]
    if one.headers:
        found += _header_words(one.headers)
    if one.value is None:
        found.append("--null")
    elif len(one.value) > MOST_TYPED:
        found.append(VALUE_FILE)
    else:
        text, encoding = typed(one.value)
        found += ["--value", text, *(["--encoding", encoding] if encoding != TEXT else [])]
    return tuple(found)


def _header_words(headers: Sequence[Header]) -> list[str]:
    as_text = all(value is None or typed(value)[1] == TEXT for _, value in headers)
    found = [] if as_text else ["--header-encoding", HEX]
    for name, value in headers:
        shown = None if value is None else value.decode() if as_text else value.hex()
        found += ["-H", name if shown is None else f"{name}={shown}"]
    return found


def again(record: Record) -> Outgoing:
    """The same record once more, in its partition. Raises Failure for headers that cannot be
    read."""
    headers = tuple(record.headers)
    if headers == (UNREADABLE,):
        raise usage("its headers have names that are not UTF-8: they would be lost")
    return Outgoing(record.topic, record.key, record.value, headers, record.partition)
