"""The result of decoding: the value machine that all decoders share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from console.model.decoding import json_text

AUTO: Final = "auto"
TEXT: Final = "text"
JSON: Final = "json"
HEX: Final = "hex"
MSGPACK: Final = "msgpack"
AVRO: Final = "avro"
PROTOBUF: Final = "protobuf"
KAFKA: Final = "kafka"
"""The brokers' own records in internal topics."""

CHOICES: Final = (AUTO, TEXT, JSON, HEX, MSGPACK, AVRO, PROTOBUF)
"""What somebody may ask for."""
KEY: Final = "key"
VALUE: Final = "value"

MOST: Final = 2 << 20
"""Bytes of a key or value that are taken apart; text is shown of any length."""
PARTS_MOST: Final = 300_000
"""Parts of a value that is not JSON already."""
_PER_LINE: Final = 16


class Unfit(Exception):
    """These bytes are not what the decoder reads; the text says why, without the decoder's name."""


@dataclass(slots=True, frozen=True)
class Tried:
    """The result of one decoder. fits: it could show the bytes. why: a sentence."""

    decoder: str
    fits: bool
    why: str


@dataclass(slots=True, frozen=True)
class Decoded:
    """decoder: the one that fits. text: what it says; of all but TEXT and HEX this is JSON, numbers
    as they were written or exact, bytes as "0x…". reason: why the decoder that was asked for does
    not fit, "" when it does. data: the original bytes."""

    decoder: str
    text: str
    data: bytes
    reason: str = ""

    @property
    def is_json(self) -> bool:
        """True if `text` is JSON."""
        return self.decoder not in (TEXT, HEX)

    @property
    def line(self) -> str:
        """All of it in one line: JSON without line breaks. Text may have line breaks in it."""
        return json_text.compact(self.text) if self.is_json else self.text

    @property
    def tree(self) -> Any:
        """JSON as objects to look into (`json_text.parse`); None for what is none, or is nested too
        deeply."""
        if not self.is_json:
            return None
        try:
            return json_text.parse(self.text)
        except ValueError:
            return None

    def lines(self) -> Iterator[str]:
        """As a person reads it at leisure: JSON indented, bytes with their positions. Lazy, so that
        somebody who looks at the first hundred lines pays for them only."""
        if self.is_json:
            return json_text.indented(self.text)
        if self.decoder == HEX:
            return dumped(self.data)
        return iter(self.text.split("\n"))


def hexed(data: bytes, reason: str = "") -> Decoded:
    """Bytes as hexadecimal digits, which always fits."""
    return Decoded(HEX, data.hex(), data, reason)


def dumped(data: bytes) -> Iterator[str]:
    """Lines of 16 bytes each: position, digits, ASCII."""
    for at in range(0, len(data), _PER_LINE):
        part = data[at : at + _PER_LINE]
        digits = f"{part[:8].hex(' ')}  {part[8:].hex(' ')}"
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{at:08x}  {digits:<{_PER_LINE * 3}}  {letters}"
