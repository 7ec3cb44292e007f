"""Help: the keys that work where somebody is, read from the bindings themselves."""

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from console.screens.actions import ACTIONS, APP, ROWS, shown, works
from console.screens.view import Part, Words

_LAST: Final = (ROWS, APP)
_OF_TEXTUAL: Final = {
    "app.focus_next": "To the next table.",
    "app.focus_previous": "To the table before.",
    "screen.copy_text": "Copy what was marked with the mouse.",
}


def list_keys(bindings: Iterable[tuple[str, str]], here: str) -> list[tuple[str, str]]:
    """(keys, what they do) of (key, action) pairs that work now, those of the place first; what is
    not in the registry is left out. here: the kind of place, where an action may mean what it means
    nowhere else."""
    keys: dict[str, list[str]] = {}
    for key, call in bindings:
        keys.setdefault(call, []).append(key)
    there = [one for one in ACTIONS if works(one.scope, here)]
    there.sort(key=lambda one: _LAST.index(one.scope) if one.scope in _LAST else -1)
    about = {one.call: one.about for one in there} | _OF_TEXTUAL
    named = {one.call: [shown(key) for key in one.keys] for one in there}
    return [
        (" ".join(named.get(call) or map(shown, keys[call])), words)
        for call, words in about.items()
        if call in keys
    ]


class HelpScreen(ModalScreen[None]):
    """The list, until a key is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        (key, "dismiss", "Close") for key in ("escape", "q", "question_mark", "f1", "enter")
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll {
        width: 76; max-width: 95%; height: auto; max-height: 90%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    """

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Words()

    def on_mount(self) -> None:
        """The list is what was told at the beginning."""
        parts: list[Part] = [("Keys that work here\n\n", "bold")]
        for keys, about in self._lines:
            parts += [(f"{keys:<12}", "bold cyan"), f" {about}\n"]
        parts.append(("\nText is marked with the mouse while Shift is held. Esc closes.", "dim"))
        self.query_one(Words).show_parts(*parts)
