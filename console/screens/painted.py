"""The cells that the terminal shows now, so that only what is different is written to it.

Textual writes every widget that was drawn anew as a whole. Over ssh that is a hundred times what a
figure that changed needs. This remembers each cell that was written, and writes runs of cells.

It reads Textual's updates of the screen, which are no public part of it: what it does not know is
written as Textual would.
"""

from collections.abc import Iterable
from typing import Final

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from console.screens.pen import Pen

Cell = tuple[str, Style | None]
"""A character with what is drawn over it, and its style; "" behind a character of two cells."""
_GAP: Final = 4
"""Cells that stayed are written too where they are fewer: to move over them is as long."""


class Changed(CompositorUpdate):
    """Runs of cells, each a line, a column, and what is written from there on."""

    def __init__(self, runs: list[tuple[int, int, Strip]]) -> None:
        self.runs = runs

    def render_segments(self, console: Console) -> str:
        """The terminal sequences that draw them."""
        pen = Pen(console._color_system or ColorSystem.TRUECOLOR)
        for y, x, strip in self.runs:
            pen.move_to(Control.move_to(x, y).segment.text)
            for text, style, _ in strip:
                pen.write_text(text, style)
        return pen.take_all()


class Painted:
    """The cells that the terminal shows, as far as they were written by this program."""

    def __init__(self) -> None:
        self._lines: list[list[Cell]] = []
        self._width = 0

    def forget_all(self) -> None:
        """Takes the terminal for unknown: the next update is written whole."""
        self._lines = []

    def find_changes(self, update: CompositorUpdate) -> CompositorUpdate | None:
        """The part of an update that is seen, and from now on known; None: no cell differs."""
        if isinstance(update, LayoutUpdate):
            return self._of_all(update)
        if isinstance(update, ChopsUpdate) and self._lines:
            return self._of_some(update)
        self.forget_all()
        return update

    def _of_all(self, update: LayoutUpdate) -> CompositorUpdate | None:
        region = update.region
        lines = [_cells(strips) for strips in map(list, update.strips)]
        before = self._lines
        fits = len(lines) == region.height and all(len(one) == region.width for one in lines)
        if not fits or region.offset != (0, 0):
            self.forget_all()
            return update
        self._lines, known = lines, self._width == region.width and len(before) == len(lines)
        self._width = region.width
        if not known:
            return Changed([(y, 0, _strip(line)) for y, line in enumerate(lines) if line])
        runs: list[tuple[int, int, Strip]] = []
        for y, (was, now) in enumerate(zip(before, lines, strict=True)):
            if was != now:
                runs += _runs(y, 0, was, now)
        return Changed(runs) if runs else None

    def _of_some(self, update: ChopsUpdate) -> CompositorUpdate | None:
        runs: list[tuple[int, int, Strip]] = []
        for y in sorted({y for y, _, _ in update.spans}):
            line = self._lines[y]
            for x, strip in update.chops[y].items():
                if strip is None:
                    continue
                now = _cells([strip])[: self._width - x]
                was = line[x : x + len(now)]
                if was != now:
                    runs += _runs(y, x, was, now)
                    line[x : x + len(now)] = now
        return Changed(runs) if runs else None


def _cells(strips: Iterable[Strip]) -> list[Cell]:
    found: list[Cell] = []
    for strip in strips:
        for text, style, control in strip:
            if control:
                continue
            if text.isascii():
                found += [(char, style) for char in text]
                continue
            for char in text:
                size = get_character_cell_size(char)
                if size:
                    found += [(char, style), ("", style)][:size]
                elif found:  # it is drawn over the one before
                    at = -1 if found[-1][0] or len(found) < 2 else -2
                    found[at] = (found[at][0] + char, found[at][1])
    return found


def _runs(y: int, x: int, was: list[Cell], now: list[Cell]) -> list[tuple[int, int, Strip]]:
    """The runs of `now` that differ from `was`; both begin in column x."""
    differs = [n for n, cell in enumerate(now) if n >= len(was) or was[n] != cell]
    spans: list[list[int]] = []
    for n in differs:
        if spans and n - spans[-1][1] <= _GAP:
            spans[-1][1] = n + 1
        else:
            spans.append([n, n + 1])
    runs = []
    for begin, end in spans:
        while begin and not now[begin][0]:
            begin -= 1  # the second half of a character is written with the first
        while end < len(now) and not now[end][0]:
            end += 1
        runs.append((y, x + begin, _strip(now[begin:end])))
    return runs


def _strip(cells: list[Cell]) -> Strip:
    segments: list[Segment] = []
    text, style = "", cells[0][1]
    for char, own in cells:
        if own is not style and own != style:
            segments.append(Segment(text, style))
            text, style = "", own
        text += char
    segments.append(Segment(text, style))
    return Strip(segments)
