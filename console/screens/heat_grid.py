"""Partitions as cells, a line for each topic, of which only the lines on the screen are made."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip as Line

from console.model.groups.groups import Place
from console.model.topics.heat import Strip, lay_out
from console.screens.actions import IN_GRID, bindings
from console.show.output import plain

SHADES: Final = "·░▒▓█"
"""By level: they differ without colours, too."""
CELL: Final = 2
"""Columns of a cell: about as wide as it is high."""
_NAME: Final = 20
_GAP: Final = 2
_NAME_MOST: Final = 400


class HeatGrid(ScrollView, can_focus=True):
    """The cells, with a cursor on one of them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_GRID)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "heat--cursor", "heat--dim", "heat--chart", "heat--warn",
    }  # fmt: skip
    DEFAULT_CSS = """
    HeatGrid { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; padding: 0 1; }
    HeatGrid > .heat--cursor { text-style: reverse bold; }
    HeatGrid > .heat--dim { text-style: dim; }
    HeatGrid > .heat--chart { color: $text-primary; }
    HeatGrid > .heat--warn { color: $text-warning; }
    HeatGrid.framed:focus { border: round $border !important; }
    """

    class Moved(Message):
        """The cursor is on another cell."""

    class Opened(Message):
        """Somebody goes into the cell under the cursor."""

    def __init__(self, *, name: str) -> None:
        super().__init__(id=name)
        self._places: Sequence[Place] = ()
        self._level: Callable[[Place], int] = lambda place: 0
        self._ink = "chart"
        self._empty = ""
        self._lines: list[Strip] = []
        self._begins: list[int] = []
        self._width = 0
        self._cursor = 0
        self._drawn: tuple[object, ...] = ()

    def show_cells(
        self, places: Sequence[Place], level: Callable[[Place], int], ink: str, empty: str
    ) -> None:
        """These partitions from now on, in their order. level: of one, its shade. ink: the style of
        those above 0. empty: the sentence that stands there when there is none."""
        here = self.place
        same = places == self._places
        self._places, self._level, self._ink, self._empty = places, level, ink, empty
        if not same or self._width != self._cells_of_line():
            self._lay_out()
            found = places.index(here) if here in places else min(self._cursor, len(places) - 1)
            self._cursor = max(0, found)
        if (drawn := self._on_screen()) != self._drawn:
            self._drawn = drawn
            self.refresh()

    @property
    def place(self) -> Place | None:
        """The partition under the cursor, None when there is none."""
        return self._places[self._cursor] if self._cursor < len(self._places) else None

    def _on_screen(self) -> tuple[object, ...]:
        top = self.scroll_offset.y
        lines = self._lines[top : top + max(1, self.size.height)]
        levels = tuple(
            self._level(self._places[n])
            for one in lines
            for n in range(one.begin, one.begin + one.count)
        )
        return (levels, tuple(lines), self._cursor, self._ink, self._empty, self.size)

    def _cells_of_line(self) -> int:
        """Cells that a line has room for, with a scrollbar beside it or without."""
        room = self.scrollable_content_region.width - _NAME - _GAP
        if not self.show_vertical_scrollbar:
            room -= self.scrollbar_size_vertical  # it may come with the next line
        return max(1, room // CELL)

    def _lay_out(self) -> None:
        self._width = self._cells_of_line()
        self._lines = lay_out(self._places, self._width)
        self._begins = [one.begin for one in self._lines]
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))

    def on_resize(self) -> None:
        """As many cells in a line as there is room for; the cursor stays in sight."""
        self._lay_out()
        self._to(self._cursor)

    # What keys and the mouse do -------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Arrows move the cursor and not the lines."""
        return not action.startswith("scroll_")

    def action_cell(self, by: int) -> None:
        """The cursor goes so many cells on."""
        self._to(self._cursor + by)

    def action_line(self, by: int) -> None:
        """So many lines down, to the cell below."""
        if not self._lines:
            return
        at = self._line_of(self._cursor)
        there = self._lines[min(max(at + by, 0), len(self._lines) - 1)]
        column = min(self._cursor - self._lines[at].begin, there.count - 1)
        self._to(there.begin + column)

    def action_screen(self, direction: int) -> None:
        """Half of what is seen."""
        self.action_line(direction * max(1, self.size.height // 2))

    def action_edge(self, last: bool) -> None:
        """To the first cell or the last one."""
        self._to(len(self._places) if last else 0)

    def action_enter(self) -> None:
        """Into the partition's topic."""
        if self.place is not None:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """A click goes to a cell, one on the cell of the cursor goes into it."""
        at = event.get_content_offset(self)
        line = at.y + self.scroll_offset.y if at is not None else len(self._lines)
        if at is None or line >= len(self._lines):
            return
        column = (at.x - _NAME - _GAP) // CELL
        one = self._lines[line]
        if 0 <= column < one.count:
            if one.begin + column == self._cursor:
                self.action_enter()
            self._to(one.begin + column)

    def _line_of(self, number: int) -> int:
        return max(0, bisect_right(self._begins, number) - 1)

    def _to(self, number: int) -> None:
        before = self._cursor
        self._cursor = min(max(0, number), max(0, len(self._places) - 1))
        line, top, seen = self._line_of(self._cursor), self.scroll_offset.y, self.size.height
        if not top <= line < top + max(1, seen):
            to = line if line < top else line - max(1, seen) + 1
            self.scroll_to(y=to, animate=False, immediate=True)
        self.refresh()
        if self._cursor != before:
            self.post_message(self.Moved())

    # What is seen ---------------------------------------------------------------------------------

    def render_line(self, y: int) -> Line:
        """The name of a topic, or the number of the line's first partition, and its cells."""
        width, base = self.scrollable_content_region.width, self.rich_style
        number = y + self.scroll_offset.y
        if number >= len(self._lines):
            text = self._empty if not self._places and y == 0 else ""
            return Line([Segment(set_cell_size(plain(text), width), self._style("dim"))], width)
        one = self._lines[number]
        begins = not one.first or number == self.scroll_offset.y
        name = plain(one.topic[:_NAME_MOST]) if begins else f"{one.first:>{_NAME}}"
        label = set_cell_size(name, _NAME) + " " * _GAP
        parts = [Segment(label, base if begins else self._style("dim"))]
        for n in range(one.begin, one.begin + one.count):
            level = self._level(self._places[n])
            style = self._style(self._ink if level else "dim")
            if n == self._cursor and self.has_focus:
                style = base + self.get_component_rich_style("heat--cursor", partial=True)
            parts.append(Segment(SHADES[level] * CELL, style))
        return Line(parts).adjust_cell_length(width, base).crop(0, width)

    def _style(self, name: str) -> Style:
        return self.rich_style + self.get_component_rich_style(f"heat--{name}", partial=True)
