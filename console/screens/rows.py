"""A table of which only the lines on the screen are made: 10,000 rows cost what 20 do.

Cells are drawn as they are, never parsed as markup: what a broker calls its topics cannot paint the
screen. The cursor stays on its row when the rows change around it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.screens.actions import ROWS, bindings
from console.show.output import plain

Cell = str | tuple[str, str]
"""What is shown, with one of STYLES."""
STYLES: Final = ("dim", "bad", "warn", "good", "chart")
_WIDEST, _NARROWEST, _STEP = 72, 32, 8
"""Of names with figures behind them: farther away one loses the row. Between the two it is as wide
as the longest name seen so far, in steps, so that columns seldom move."""
_GAP: Final = 2
_LEAST: Final = 12
"""For names, before what needs a wide table goes; twice that in a table that is ROOMY."""
_ROOMY: Final = 96
_TITLE_MOST: Final = 200
_EACH: Final = 20
"""Characters that are looked at for each cell of a column: some take none."""


@dataclass(slots=True, frozen=True)
class Column:
    """width: in characters; 0 for the one that takes what is left. right: numbers. from_width:
    shown only in a table of at least so many characters. below_width: only in a narrower one."""

    title: str
    width: int
    right: bool = False
    from_width: int = 0
    below_width: int = 1 << 30

    def fits(self, width: int) -> bool:
        """True if it is shown in a table of this width."""
        return self.from_width <= width < self.below_width


class Rows(ScrollView, can_focus=True):
    """The table. Whoever fills it gives keys, in order, and what makes a row of a key."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ROWS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--head", "rows--cursor", *(f"rows--{name}" for name in STYLES),
    }  # fmt: skip
    DEFAULT_CSS = """
    Rows { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    Rows > .rows--head { text-style: bold; }
    Rows > .rows--cursor { background: $cursor-background; }
    Rows > .rows--dim { text-style: dim; }
    Rows > .rows--bad { color: $text-error; text-style: bold; }
    Rows > .rows--warn { color: $text-warning; }
    Rows > .rows--good { color: $text-success; }
    Rows > .rows--chart { color: $text-primary; }
    """

    class Opened(Message):
        """Somebody goes into a row."""

        def __init__(self, rows: "Rows", key: str) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> "Rows":
            """The table, for Textual's selectors."""
            return self.rows

    class Moved(Opened):
        """The cursor is on another row."""

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        name: str,
        empty: str = "",
        opens: bool = True,
        marks: bool = False,
        classes: str | None = None,
    ) -> None:
        """empty: the sentence that stands there when there is no row. opens: whether somebody can
        go into a row. marks: whether rows can be marked. classes: for styles."""
        super().__init__(id=name, classes=classes)
        self._columns = tuple(columns)
        self._empty = empty
        self._opens = opens
        self._marks = marks
        self._marked: set[str] = set()
        self._given: Sequence[str] = ()
        self._keys: Sequence[str] = ()
        self._cells: Callable[[str], Sequence[Cell]] = lambda key: (key,)
        self._by: Callable[[str, int], Any] | None = None
        self._values: Callable[[Sequence[str], int], Iterable[Any] | None] = lambda *_: None
        self._cursor = 0
        self._sorted: int | None = None
        self._longest = 0  # of the first cells on the screen so far
        self._drawn: _OnScreen | None = None
        self._drawing: _Drawing | None = None
        self._made: dict[str, Sequence[Cell]] = {}
        """Cells of rows that were on the screen since the rows were given."""
        self._title_text = self._titled = ""

    def set_title(self, title: str) -> None:
        """The title of its frame from now on; `{}` in it is the number of rows."""
        self._title_text = title
        self._entitle()

    def _entitle(self) -> None:
        words = plain(self._title_text[:_TITLE_MOST].replace("{}", f"{len(self._keys):,}"))
        if words != self._titled:
            self._titled = words
            self.border_title = Content(words)

    def show_rows(
        self,
        keys: Sequence[str],
        cells: Callable[[str], Sequence[Cell]],
        by: Callable[[str, int], Any] | None = None,
        *,
        empty: str | None = None,
        values: Callable[[Sequence[str], int], Iterable[Any] | None] = lambda *_: None,
    ) -> None:
        """These rows from now on. cells: of a key, one for each column; called when it is seen. by:
        what (key, column number) is sorted by, numbers with the greatest first. values: the same
        for all keys at once, for lists of thousands; None where it has no quicker way for it."""
        here = self.key
        self._given, self._cells, self._by, self._values = keys, cells, by, values
        self._made = {}
        self._empty = self._empty if empty is None else empty
        self._order()
        self._entitle()
        self._stay_on(here)

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Other columns from now on; `show` says what is in them."""
        if tuple(columns) != self._columns:
            if len(columns) != len(self._columns):
                self._sorted = None
            self._columns = tuple(columns)
            self.refresh()

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor, None when there is no row."""
        return self._keys[self._cursor] if self._cursor < len(self._keys) else None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._keys)

    @property
    def marked(self) -> tuple[str, ...]:
        """The marked ones of the rows that there are, in their order."""
        return tuple(key for key in self._keys if key in self._marked) if self._marked else ()

    @property
    def at_start(self) -> bool:
        """True if the cursor is on the first row, or there is none."""
        return self._cursor == 0

    @property
    def at_end(self) -> bool:
        """True if the cursor is on the last row, or there is none."""
        return self._cursor >= len(self._keys) - 1

    def select_row(self, key: str) -> None:
        """The cursor goes to the row of a key, where there is one."""
        if key in self._keys:
            self._to(self._keys.index(key))

    def _order(self) -> None:
        column, by = self._sorted, self._by
        if column is None or by is None:
            self._keys = self._given
            return
        given = self._given
        quick = self._values(given, column)
        values = [by(key, column) for key in given] if quick is None else list(quick)
        numbers = bool(values) and not isinstance(values[0], str)
        order = sorted(range(len(values)), key=values.__getitem__, reverse=numbers)
        self._keys = [given[at] for at in order]

    def _stay_on(self, key: str | None) -> None:
        was = self._cursor
        if self._cursor >= len(self._keys) or self._keys[self._cursor] != key:
            try:
                self._cursor = self._keys.index(key) if key is not None else 0
            except ValueError:  # it is gone
                self._cursor = min(self._cursor, max(0, len(self._keys) - 1))
        self._fit()
        self._draw_changes()
        if self._cursor != was and self._is_seen(was):
            self.call_after_refresh(self._in_sight)
        if self.key != key:
            self._told(self.Moved)

    def _on_screen(self) -> "_OnScreen":
        top, seen = self.scroll_offset.y, self._keys[self.scroll_offset.y :][: self.size.height]
        cells = tuple(map(self._cells_of, seen))
        self._see_names(cells)
        lines = tuple((key in self._marked, *of) for key, of in zip(seen, cells, strict=True))
        around = (
            top, len(self._keys), self.size, self._sorted, self._empty, self._longest, self._columns
        )  # fmt: skip
        return _OnScreen(lines, self._cursor - top, around)

    def _draw_changes(self) -> None:
        """Draws the lines that have changed, and nothing while all stay as they are."""
        before, self._drawn = self._drawn, self._on_screen()
        changed = self._drawn.find_changed(before)
        if changed is None:
            self.refresh()
        elif changed:
            width = self.size.width
            self.refresh(*(Region(0, line + 1, width, 1) for line in changed))

    def _see_names(self, cells: Sequence[Sequence[Cell]]) -> None:
        """The first column becomes as wide as the longest of these names, up to the widest."""
        longest = max((len(_words(one[0])) for one in cells if one), default=0)
        if longest > self._longest:
            self._longest = min(_WIDEST, -(-longest // _STEP) * _STEP)

    def _cells_of(self, key: str) -> Sequence[Cell]:
        """The cells of a row, made once for each time that rows are given."""
        cells = self._made.get(key)
        if cells is None:
            cells = self._made[key] = tuple(self._cells(key))
        return cells

    def _told(self, kind: type[Opened]) -> None:
        if self.key is not None:
            self.post_message(kind(self, self.key))

    # What keys and the mouse do -----------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """The cursor goes so many rows down."""
        self._to(self._cursor + by)

    def action_page(self, direction: int) -> None:
        """Half of what is seen."""
        self._to(self._cursor + direction * max(1, (self.size.height - 1) // 2))

    def action_end(self, last: bool) -> None:
        """To the first row or the last one."""
        self._to(len(self._keys) if last else 0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what can be done is offered."""
        if action in ("scroll_left", "scroll_right"):
            return False  # a table has no more columns than are seen: the arrows are the view's
        if action == "mark":
            return self._marks
        return self._opens if action == "open" else super().check_action(action, parameters)

    def action_open(self) -> None:
        """Into the row under the cursor."""
        self._told(self.Opened)

    def action_mark(self) -> None:
        """The row under the cursor, or not any more; and on to the next one."""
        if self.key is not None:
            self._marked ^= {self.key}
            self._to(self._cursor + 1)

    def action_sort(self) -> None:
        """By the next of the columns that are seen."""
        if self._by is None:
            return
        shown = self._shown()
        later = [n for n in shown if self._sorted is None or n > self._sorted]
        self._sorted = later[0] if later else None
        here = self.key
        self._order()
        self._stay_on(here)

    def _to(self, row: int) -> None:
        before = self._cursor
        self._cursor = min(max(0, row), max(0, len(self._keys) - 1))
        self._in_sight()
        self._draw_changes()
        if self._cursor != before:
            self._told(self.Moved)

    def _is_seen(self, row: int) -> bool:
        top = self.scroll_offset.y
        return top <= row < top + max(1, self.size.height - 1)

    def _in_sight(self) -> None:
        if not self._is_seen(self._cursor):
            above = self._cursor < self.scroll_offset.y
            to = self._cursor if above else self._cursor - max(1, self.size.height - 1) + 1
            self.scroll_to(y=to, animate=False, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """A click goes to a row, one on the row where the cursor is goes into it."""
        at = event.get_content_offset(self)
        if at is None or at.y < 1:
            return
        row = at.y - 1 + self.scroll_offset.y
        if row >= len(self._keys):
            return
        if row == self._cursor and self._opens:
            self._told(self.Opened)
        self._to(row)

    def on_resize(self) -> None:
        """The row under the cursor stays in sight."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._keys) + 1)
        self._to(self._cursor)

    def _fit(self) -> None:
        """Sets the room that rows take. Another number of rows is no reason to lay the screen out
        anew where all were seen and all are."""
        room = Size(self.scrollable_content_region.width, len(self._keys) + 1)
        before, seen = self.virtual_size, self.size.height
        if room == before:
            return
        is_scrolled = room.width == before.width and min(room.height, before.height) > seen + 1
        if is_scrolled and self.scroll_offset.y <= room.height - self.container_size.height:
            self.set_reactive(ScrollView.virtual_size, room)
            self._scroll_update(room)  # the bar moves, and nothing else
            return
        if room.width != before.width or max(room.height, before.height) > seen:
            self.virtual_size = room

    # What is seen -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the titles, then rows from where it is scrolled to."""
        drawing = self._drawing or self._begin_drawing()
        width, base = drawing.width, drawing.base
        if y == 0:
            head = base + self.get_component_rich_style("rows--head", partial=True)
            return self._line(drawing, [self._head(*one) for one in drawing.columns], head)
        row = y - 1 + self.scroll_offset.y
        if row >= len(self._keys):
            text = self._empty if not self._keys and y == 1 else ""
            dim = base + self.get_component_rich_style("rows--dim", partial=True)
            return Strip([Segment(set_cell_size(plain(text), width), dim)], width)
        given = self._cells_of(self._keys[row])
        cells = [given[n] for n in drawing.shown]
        if self._keys[row] in self._marked:
            cells[0] = (f"● {_words(cells[0])}", "warn")
        if row == self._cursor and self.has_focus:
            style = base + self.get_component_rich_style("rows--cursor", partial=True)
            return self._line(drawing, cells, style)
        return self._line(drawing, cells, base)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of the screen; what they have in common is found once."""
        self._drawing = self._begin_drawing()
        try:
            return super().render_lines(crop)
        finally:
            self._drawing = None

    def _begin_drawing(self) -> "_Drawing":
        width = self.scrollable_content_region.width
        shown = fitting(self._columns, width)
        return _Drawing(width, self.rich_style, shown, self._seen(shown, width))

    def _head(self, column: Column, width: int) -> str:
        sorted_by = self._sorted is not None and self._columns[self._sorted] is column
        return f"{column.title[: width - 1]}↓" if sorted_by else column.title

    def _shown(self) -> list[int]:
        return fitting(self._columns, self.scrollable_content_region.width)

    def _seen(self, numbers: Sequence[int], width: int) -> list[tuple[Column, int]]:
        """The columns that are shown, with their widths."""
        shown = [self._columns[n] for n in numbers]
        left = _left(shown, width)
        if not shown[0].width and len(shown) > 1:
            left = min(left, max(_NARROWEST, self._longest))
        return [(one, one.width or max(4, left)) for one in shown]

    def _line(self, drawing: "_Drawing", cells: Sequence[Cell], style: Style) -> Strip:
        parts, width = [], drawing.width
        for (column, size), cell in zip(drawing.columns, cells, strict=True):
            own = style
            if not isinstance(cell, str) and cell[1]:
                own = style + self.get_component_rich_style(f"rows--{cell[1]}", partial=True)
            text = plain(_words(cell)[: size * _EACH])
            parts.append(Segment(_fit(text, size, right=column.right), own))
            parts.append(Segment(" " * _GAP, style))
        return Strip(parts[:-1]).adjust_cell_length(width, style).crop(0, width)


class _Drawing(NamedTuple):
    """The common part of all lines of a picture. shown: the numbers of the columns; columns: these
    with their widths."""

    width: int
    base: Style
    shown: Sequence[int]
    columns: Sequence[tuple[Column, int]]


class _OnScreen(NamedTuple):
    """All that a picture is made of. lines: whether a row is marked, and its cells; cursor: the
    line that has it; around: what every line depends on."""

    lines: tuple[tuple[Any, ...], ...]
    cursor: int
    around: tuple[object, ...]

    def find_changed(self, before: "_OnScreen | None") -> list[int] | None:
        """The lines that differ from those of another picture; None: all may."""
        if before is None or self.around != before.around or len(self.lines) != len(before.lines):
            return None
        pairs = zip(self.lines, before.lines, strict=True)
        changed = {line for line, (now, was) in enumerate(pairs) if now != was}
        if self.cursor != before.cursor:
            changed |= {self.cursor, before.cursor}
        return sorted(changed)


def fitting(columns: Sequence[Column], width: int) -> list[int]:
    """The numbers of the columns that a table of `width` characters has room for. Those that want
    the widest table go first where names would be cut to a few letters."""
    shown = [n for n, one in enumerate(columns) if one.fits(width)]
    least = _LEAST if width < _ROOMY else 2 * _LEAST
    if not any(one.title for one in columns if not one.width):
        least = 0  # there is nothing in the column that takes the rest
    while _left([columns[n] for n in shown], width) < least:
        more = [n for n in shown if columns[n].from_width]
        if not more:
            break
        shown.remove(max(more, key=lambda n: columns[n].from_width))
    return shown


def _left(shown: Sequence[Column], width: int) -> int:
    """The width left for the column without a width of its own."""
    return width - sum(one.width for one in shown) - _GAP * (len(shown) - 1)


def _words(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _fit(text: str, width: int, *, right: bool) -> str:
    """Exactly `width` cells; what is cut off is told."""
    there = cell_len(text)
    if there > width:
        return set_cell_size(text, width - 1) + "…" if width else ""
    gap = " " * (width - there)
    return gap + text if right else text + gap
