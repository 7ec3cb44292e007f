"""Frames, bars and marks in the characters that every alphabet has: each takes the same cells."""

import codecs
import unicodedata
from typing import Final

ERRORS: Final = "penstock.plain_shapes"
"""The name of the error handler; `register_errors` makes it known."""
_SHAPES: Final = (
    ("─━═╌┄", "-"), ("│┃║╎┊", "|"), ("╭╮╰╯┌┐└┘├┤┬┴┼╔╗╚╝╞╡", "+"),
    ("█▇▆▅▉▊▋▌▐", "#"), ("▄▃", "="), ("▂▁", "_"), ("▓▒", "%"), ("░", ":"),
    ("▀▔", '"'), ("▎▍▏▕", "|"), ("▲↑", "^"), ("▼↓", "v"), ("→▶▸", ">"), ("←◀", "<"),
    ("●✓", "*"), ("○◌", "o"), ("✗×", "x"), ("…·•", "."), ("–—", "-"), ("≤", "<"), ("≥", ">"),
    ("“”", '"'), ("‘’", "'"),
)  # fmt: skip
_PLAIN: Final = {one: plain for shapes, plain in _SHAPES for one in shapes}


def replace_shapes(text: str) -> str:
    """The text with a character of ASCII for each shape, and with ? for each other cell."""
    return "".join(map(_plain, text))


def _plain(one: str) -> str:
    if one.isascii() or one in _PLAIN:
        return _PLAIN.get(one, one)
    if unicodedata.combining(one) or unicodedata.category(one) == "Cf":
        return ""  # it takes no cell
    return "??" if unicodedata.east_asian_width(one) in ("W", "F") else "?"


def _encode(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return replace_shapes(error.object[error.start : error.end]), error.end


def register_errors() -> None:
    """Make the error handler known to encoders of this process."""
    codecs.register_error(ERRORS, _encode)
