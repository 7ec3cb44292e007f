"""Styled text as terminal sequences that say only what changes from one piece to the next.

A style written whole takes 40 bytes, before a figure of four characters: over a slow line that is
what a picture costs most for.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from rich.color import ColorSystem
from rich.style import Style

_RESET: Final = "\x1b[0m"
_STYLES: Final = 4_096


class _Pen(NamedTuple):
    """SGR parameters (ECMA-48, 8.3.117) of a style. marks_blanks: a blank looks another way, too:
    underlined, reversed or struck through."""

    attributes: str = ""
    ink: str = ""
    ground: str = ""
    marks_blanks: bool = False


_PLAIN: Final = _Pen()


class Pen:
    """Writes pieces one after the other. It begins and ends with the terminal's own style."""

    def __init__(self, system: ColorSystem) -> None:
        """system: the colours that the terminal has."""
        self._system = system
        self._now = _PLAIN
        self._parts: list[str] = []

    def move_to(self, sequence: str) -> None:
        """A sequence that moves the cursor."""
        self._parts.append(sequence)

    def write_text(self, text: str, style: Style | None) -> None:
        """A piece of text, of cells that are shown."""
        if style is not None and style.link:
            self._change_to(_PLAIN)
            self._parts.append(style.render(text, color_system=self._system))
            return
        pen = _PLAIN if style is None else _find_pen(style, self._system)
        if not (pen.marks_blanks or self._now.marks_blanks) and text.isspace():
            pen = self._now._replace(ground=pen.ground)  # of a blank the ground alone is seen
        self._change_to(pen)
        self._parts.append(text)

    def take_all(self) -> str:
        """All that was written."""
        self._change_to(_PLAIN)
        return "".join(self._parts)

    def _change_to(self, pen: _Pen) -> None:
        now, self._now = self._now, pen
        if pen == now:
            return
        if pen == _PLAIN:
            self._parts.append(_RESET)
            return
        codes = []
        if pen.attributes != now.attributes:
            codes = [part for part in ("0", pen.attributes, pen.ink, pen.ground) if part]
        else:
            if pen.ink != now.ink:
                codes.append(pen.ink or "39")
            if pen.ground != now.ground:
                codes.append(pen.ground or "49")
        self._parts.append(f"\x1b[{';'.join(codes)}m")


@lru_cache(_STYLES)
def _find_pen(style: Style, system: ColorSystem) -> _Pen:
    marks = bool(style.underline or style.underline2 or style.reverse or style.strike)
    return _Pen(
        _codes(style.without_color, system),
        _codes(Style(color=style.color), system),
        _codes(Style(bgcolor=style.bgcolor), system),
        marks or bool(style.overline or style.frame or style.encircle),
    )


def _codes(style: Style, system: ColorSystem) -> str:
    rendered = style.render("x", color_system=system)
    return rendered[2 : rendered.index("m")] if rendered.startswith("\x1b[") else ""
