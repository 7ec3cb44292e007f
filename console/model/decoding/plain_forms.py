"""Text and JSON: bytes that say what they are themselves."""

import re
from typing import Final

from console.model.decoding import json_text
from console.model.decoding.decoded import JSON, MOST, TEXT, Decoded, Unfit

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
"""What no text has in it, but numbers in binary have. ESC is let through: logs have colours."""
_NESTS: Final = (b"{", b"[")


def text(data: bytes) -> Decoded:
    """Any UTF-8. Raises Unfit."""
    return Decoded(TEXT, _utf8(data), data)


def likely_text(data: bytes) -> Decoded:
    """UTF-8 without control characters. Raises Unfit."""
    found = text(data)
    if control := _CONTROL.search(found.text):
        raise Unfit(f"the control character {ord(control[0])} is in it")
    return found


def json(data: bytes) -> Decoded:
    """Any JSON. Raises Unfit."""
    if len(data) > MOST:
        raise too_long(data)
    found = _utf8(data)
    try:
        json_text.parse(found)
    except ValueError as wrong:
        raise Unfit(str(wrong)) from None
    return Decoded(JSON, found, data)


def likely_json(data: bytes) -> Decoded:
    """JSON that is an object or an array: of a number or a word nobody can tell. Raises Unfit."""
    if not data.lstrip().startswith(_NESTS):
        raise Unfit("it begins with neither { nor [")
    return json(data)


def too_long(data: bytes) -> Unfit:
    """Why something is not taken apart."""
    return Unfit(f"it has {len(data)} bytes: more than {MOST} are not taken apart")


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as wrong:
        raise Unfit(f"byte 0x{data[wrong.start]:02x} at {wrong.start} is not UTF-8") from None
