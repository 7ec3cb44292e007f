"""Why a key or a value looks as it does: what each decoder made of it, and another for the whole
topic."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.model.decoding.decoded import AUTO, CHOICES, Tried
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Words

_COLUMNS: Final = (
    Column("OF", 6),
    Column("DECODER", 9),
    Column("", 4),
    Column("WHY", 0),
)


class WhyScreen(ModalScreen[tuple[str, str] | None]):
    """Ends with (part, decoder) that somebody wants from now on, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        (key, "dismiss", "Close") for key in ("escape", "q", "d")
    ]
    DEFAULT_CSS = """
    WhyScreen { align: center middle; }
    WhyScreen > Vertical {
        width: 100; max-width: 96%; height: 20; max-height: 90%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    WhyScreen #why { height: auto; max-height: 4; margin-top: 1; }
    """

    def __init__(self, topic: str, tried: tuple[tuple[str, Tried], ...]) -> None:
        """tried: (KEY or VALUE, what became of a decoder)."""
        super().__init__()
        self._topic = topic
        every = Tried(AUTO, True, "the first one that fits, chosen for each record")
        self._rows = {
            f"{part} {one.decoder}": (part, one)
            for part in dict.fromkeys(part for part, _ in tried)
            for one in (every, *(each for of, each in tried if of == part))
        }

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Words(name="heading")
            yield Rows(_COLUMNS, name="tried", empty="key and value are null")
            yield Words(name="why")

    def on_mount(self) -> None:
        """The list is what was tried."""
        self.query_one("#heading", Words).show_parts(
            (f"What decoders make of this record of {self._topic}\n", "bold"),
            ("Enter: read all of the topic so, now and later.  Esc", "dim"),
        )
        rows = self.query_one(Rows)
        rows.show_rows(list(self._rows), self._cells)
        rows.focus()
        self._tell()

    def _cells(self, key: str) -> tuple[Cell, ...]:
        part, one = self._rows[key]
        fits: Cell = ("fits", "good") if one.fits else ("no", "dim")
        return part, one.decoder, fits, one.why

    def _tell(self) -> None:
        """The whole reason, which may be longer than a line."""
        found = self._rows.get(self.query_one(Rows).key or "")
        self.query_one("#why", Words).show_parts(found[1].why if found is not None else "")

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another one is under the cursor."""
        event.stop()
        self._tell()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """This one, from now on."""
        event.stop()
        part, one = self._rows[event.key]
        if one.decoder in CHOICES:
            self.dismiss((part, one.decoder))
        else:
            self.query_one("#why", Words).show_parts("this one is found by itself: choose auto")
