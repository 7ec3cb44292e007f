"""Terminal sequences that say only what changes mean what each style written whole means."""

import random
import re

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style

from console.screens.pen import Pen

ATTRIBUTES = {
    "bold": "1", "dim": "2", "italic": "3", "underline": "4", "reverse": "7", "strike": "9",
}  # fmt: skip
SEEN_ON_BLANKS = {"4", "7", "9"}
_PARTS = re.compile(r"\x1b\[([0-9;]*)m|(.)", re.DOTALL)


def interpret(sequence):
    """(character, attributes, ink, ground) of each cell, as a terminal takes it, and the style that
    it is left in."""
    cells, attributes, ink, ground = [], set(), "", ""
    for codes, char in _PARTS.findall(sequence):
        if char:
            cells.append((char, frozenset(attributes), ink, ground))
            continue
        left = codes.split(";")
        while left:
            code = left.pop(0)
            if code == "0":
                attributes, ink, ground = set(), "", ""
            elif code in ("38", "48"):
                count = 4 if left[0] == "2" else 2
                colour, left = ";".join([code, *left[:count]]), left[count:]
                ink, ground = (colour, ground) if code == "38" else (ink, colour)
            elif code == "39":
                ink = ""
            elif code == "49":
                ground = ""
            elif code in ATTRIBUTES.values():
                attributes.add(code)
            elif code[0] in "39" and len(code) == 2:
                ink = code
            else:
                ground = code
    return cells, (attributes, ink, ground)


def seen(cells):
    """Of a blank the ground is seen, and the ink only where something is drawn through it."""
    for char, attributes, ink, ground in cells:
        if char == " " and not attributes & SEEN_ON_BLANKS:
            yield char, frozenset(), "", ground
        else:
            yield char, attributes, ink, ground


def some_style(chance):
    colours = [None, *(Color.from_rgb(value, 90, 200) for value in (10, 120, 230))]
    named = {name: True for name in ATTRIBUTES if chance.random() < 0.15}
    return Style(color=chance.choice(colours), bgcolor=chance.choice(colours), **named)


@pytest.mark.parametrize("system", list(ColorSystem)[:3], ids=lambda one: one.name)
def test_each_cell_looks_as_if_its_style_was_written_whole(system):
    chance = random.Random(7)
    styles = [None, *(some_style(chance) for _ in range(40))]
    pen, whole = Pen(system), []
    for _ in range(2000):
        text = chance.choice(("orders", "  ", " ", "1.20k ", "│"))
        style = chance.choice(styles)
        pen.write_text(text, style)
        whole.append(text if style is None else style.render(text, color_system=system))
    cells, left = interpret(pen.take_all())
    assert list(seen(cells)) == list(seen(interpret("".join(whole))[0]))
    assert left == (set(), "", ""), "what is written next has the terminal's own style"


def test_a_style_that_stays_is_written_once_and_a_link_whole():
    pen, style = Pen(ColorSystem.TRUECOLOR), Style(color="red", bgcolor="black")
    pen.write_text("a", style)
    pen.move_to("\x1b[2;1H")
    pen.write_text("b", style)
    pen.write_text(" ", Style(color="blue", bgcolor="black", bold=True))
    assert pen.take_all() == "\x1b[31;40ma\x1b[2;1Hb \x1b[0m"
    pen = Pen(ColorSystem.TRUECOLOR)
    pen.write_text("a", Style(link="https://kafka.apache.org"))
    assert pen.take_all().startswith("\x1b]8;")
