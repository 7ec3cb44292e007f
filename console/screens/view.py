"""The base of all views: a place, the world they read, and painting after a change."""

from typing import TYPE_CHECKING, ClassVar, Final, cast

from rich.cells import cell_len
from rich.text import Text
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from console.model.change import Proposal
from console.screens.changes.form import Form
from console.screens.places import Place
from console.screens.world import World
from console.show.output import plain

if TYPE_CHECKING:
    from console.screens.app import ConsoleApp

Part = str | tuple[str, str]
"""Words, or words with a style of rich."""
_LINE_MOST: Final = 2_000
"""Characters of one line: who broke a name of 100,000 into lines held up every key."""


class View(Vertical):
    """One place on the screen. `paint` is called whenever something may have changed; it reads the
    world's last answers and asks nothing."""

    BINDINGS: ClassVar[list[BindingType]] = []
    DEFAULT_CSS = "View { height: 1fr; }"
    has_filter: ClassVar[bool] = False

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

    def on_mount(self) -> None:
        """Its parts are there."""
        self.is_ready = True

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
        self._parts: tuple[Part, ...] = ()

    def show_parts(self, *parts: Part) -> None:
        """These parts after each other, plain or with a style of rich. Nothing is drawn where they
        are the same as before, and nothing is laid out anew where they take the same room."""
        if parts == self._parts:
            return
        self._parts = parts
        text = Text(no_wrap=False, overflow="fold")
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append("\n".join(map(_line, words.split("\n"))), style or None)
        before, self.told = self.told, text.plain
        self.update(text, layout=not self._fits_as(before))

    def _fits_as(self, before: str) -> bool:
        """True if the text takes exactly the room that `before` took."""
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
