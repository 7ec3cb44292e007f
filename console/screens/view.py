"""The base of all views: a place, the world they read, and painting after a change."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, cast

from rich.cells import cell_len
from rich.text import Text
from textual.binding import BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from console.model.asking.change import Proposal
from console.screens.changes.form import Form
from console.screens.places import Place
from console.screens.rows import Rows
from console.screens.world import World
from console.show.output import plain

if TYPE_CHECKING:
    from console.screens.app import ConsoleApp

Part = str | tuple[str, str]
"""Words, or words with a style of rich."""
_LINE_MOST: Final = 2_000
"""Characters of one line: who broke a name of 100,000 into lines held up every key."""
FRAMED: Final = Size(100, 26)
"""The least size of a view whose parts stand in frames; a terminal has four lines more."""
_COUNT: Final = re.compile(r"[0-9,]+ [a-z ]+")
"""A count alone, which the title of the frame has, too."""
_CORNERS: Final = 4
"""Columns of a frame's lower edge beside the words in it."""
WIDE: Final = 156
"""Columns of a view from which on a list and what is under its cursor stand side by side."""
HIGH: Final = 32
"""Lines of a view from which on they stand one above the other where it is not so wide; a terminal
has four more."""


class View(Vertical):
    """One place on the screen. `paint` is called whenever something may have changed; it reads the
    world's last answers and asks nothing."""

    BINDINGS: ClassVar[list[BindingType]] = []
    DEFAULT_CSS = """
    View { height: 1fr; }
    View Rows { padding: 0 1; }
    View .summary { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    View .panes { layout: vertical; height: 1fr; }
    View .beside { display: none; }
    View.wide .panes { layout: horizontal; }
    View.wide .beside { display: block; }
    View.high .beside { display: block; }
    View.high .panes Rows { height: 3fr; }
    View.high .panes Rows.beside { height: 2fr; }
    View.large .summary { padding: 0 2; }
    View.large .summary.in-frame { display: none; }
    View .framed {
        border: round $foreground 30% !important; padding: 0 1;
    }
    View Rows, View Words, View .framed {
        border-title-color: $text-primary; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    View Rows.framed:focus { border: round $border !important; }
    """
    has_filter: ClassVar[bool] = False
    frames: ClassVar[Mapping[str, str]] = {}
    """Names of the parts that stand in frames in a large window, with their titles; `{}` in the
    title of a table is its number of rows."""
    summary_in: ClassVar[str] = ""
    """Name of the part whose frame has the summary in its lower edge; "" where it stays a line."""
    frames_from: ClassVar[Size] = FRAMED
    has_below: ClassVar[bool] = False
    """The row under the cursor stands below its list in a high window."""

    class Go(Message):
        """Somebody wants to see another place."""

        def __init__(self, place: Place) -> None:
            super().__init__()
            self.place = place

    def __init__(self, place: Place, world: World) -> None:
        super().__init__()
        self.place = place
        self.world = world
        self.filter_text = ""
        self.is_ready = False
        self.is_measured = False
        """It knows its own size, so `is_large` says how it is painted."""

    def on_mount(self) -> None:
        """Its parts are there, unless somebody went on before they were made."""
        if not self.children:
            return
        for name, title in self.frames.items():
            part = self.query_one(f"#{name}")
            if isinstance(part, Rows):
                part.set_title(title)
            elif title:
                part.border_title = title
        if self.summary_in:
            summary = self.query_one("#summary", Words)
            summary.edge = self.query_one(f"#{self.summary_in}")
            summary.add_class("in-frame")
        self.is_ready = True

    def on_resize(self) -> None:
        """Frames, and parts side by side, where there is room for them."""
        size = self.size
        self.is_measured = bool(size)
        self._set_large(self.has_frames_in(size))
        wide = size.width >= WIDE
        high = self.has_below and self.is_large and not wide and size.height >= HIGH
        if (wide, high) != (self.is_wide, self.has_class("high")):
            self.set_class(wide, "wide")
            self.set_class(high, "high")
            self.call_after_refresh(self._repaint)

    def has_frames_in(self, size: Size) -> bool:
        """True if its parts stand in frames in a body of this size."""
        least = self.frames_from
        return size.width >= least.width and size.height >= least.height

    def _set_large(self, large: bool) -> None:
        if large != self.is_large:
            for name in self.frames:
                self.query_one(f"#{name}").set_class(large, "framed", update=False)
            self.set_class(large, "large")  # its styles and those of all its parts are found anew
            self.call_after_refresh(self._repaint)

    def _repaint(self) -> None:
        """Paints for another size, unless it is gone meanwhile."""
        if self.is_ready and self.is_attached and self.display:
            self.paint()

    @property
    def is_large(self) -> bool:
        """True if its parts stand in frames."""
        return self.has_class("large")

    @property
    def is_wide(self) -> bool:
        """True if parts stand side by side."""
        return self.has_class("wide")

    @property
    def has_beside(self) -> bool:
        """True if what is under the cursor of a list stands beside it, or below."""
        return self.is_wide or self.has_class("high")

    def paint(self) -> None:
        """Show what is known now."""

    def propose(self, wanted: Proposal | Form) -> None:
        """Ask for a change, or for what it needs first. At once and not by a message: the next key
        belongs to what is asked."""
        cast("ConsoleApp", self.app).door.open_proposal(wanted)

    def line(self) -> str:
        """The command that shows what is seen, where that is not the same for every such place."""
        return ""

    def escape(self) -> bool:
        """Escape is pressed: whether there was something here to leave or to end."""
        return False

    def pause(self) -> bool:
        """P is pressed: whether something here stands still now, or goes on."""
        return False

    def grammar(self) -> list[tuple[str, str]]:
        """(what, how it is written) of what can be typed here, for the help."""
        return []

    def filter_box(self) -> Input | None:
        """Where a filter is typed, when that is here."""
        return None

    def first_table(self) -> Widget | None:
        """The part that the keys go to at first."""
        return next((one for one in self.query(Rows) if one.display), None)

    def waiting(self) -> str:
        """The text shown before anything is known."""
        source = self.world.main(self.place)
        failure = source.shown.failure or self.world.cluster.shown.failure
        return failure.message if failure is not None else "asking …"


class Words(Static):
    """Text that is drawn as it is: no markup is parsed in it, control characters are escaped."""

    DEFAULT_CSS = "Words { height: auto; }"

    def __init__(self, *, name: str | None = None, classes: str | None = None) -> None:
        super().__init__(Text(), markup=False, id=name, classes=classes)
        self.told = ""
        self.edge: Widget | None = None
        """The part whose frame has the same words in its lower edge."""
        self._parts: tuple[Part, ...] = ()
        self._room = 0  # in the lower edge, when the parts were shown last

    def show_parts(self, *parts: Part) -> None:
        """These parts after each other, plain or with a style of rich. Nothing is drawn where they
        are the same as before, and nothing is laid out anew where they take the same room."""
        room = self.edge.size.width - _CORNERS if self.edge is not None else 0
        if (parts, room) == (self._parts, self._room):
            return
        self._parts, self._room = parts, room
        text = Text(no_wrap=False, overflow="fold")
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append("\n".join(map(_line, words.split("\n"))), style or None)
        before, self.told = self.told, text.plain
        if self.edge is not None:
            fits = room <= 0 or cell_len(text.plain) <= room
            self.set_class(fits, "in-frame")  # else a line of their own, which is wider
            says = text.plain.strip() and not _COUNT.fullmatch(text.plain)
            self.edge.border_subtitle = text.copy() if fits and says else None
        self.update(text, layout=not self._fits_as(before))

    def _fits_as(self, before: str) -> bool:
        """True if the text takes exactly the room that `before` took."""
        styles = self.styles
        if not styles.is_auto_width and styles.height is not None and not styles.is_auto_height:
            return True
        was, now = _widths(before), _widths(self.told)
        if self.styles.is_auto_width or len(was) != len(now):
            return was == now
        return max(was + now) <= self.content_size.width


def _widths(text: str) -> list[int]:
    """The cells that each line takes before it is wrapped."""
    return [cell_len(line) for line in text.split("\n")]


def _line(words: str) -> str:
    kept = words if len(words) <= _LINE_MOST else f"{words[:_LINE_MOST]}…"
    return plain(kept)
