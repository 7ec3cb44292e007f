"""The line of keys at the foot: those of the place first, and as many as fit, whole."""

from typing import Any, Final

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.widgets import Footer

_STAY: Final = ("help", "quit")
"""Actions that are shown however narrow the terminal is: the one names all the others."""
_AROUND: Final = 3  # cells: before a key, behind it, behind its words


class Keys(Footer):
    """A footer that leaves out, from its end, what would be cut off."""

    def compose(self) -> ComposeResult:
        """The keys that work here, as Textual has them, without those that do not fit."""
        return iter(fitting(list(super().compose()), self.app.size.width))

    def on_resize(self, event: events.Resize) -> None:
        """There may be room for more."""
        self.call_after_refresh(self.recompose)


def fitting(keys: list[Any], room: int) -> list[Any]:
    """keys: in their order; each has an action, key_display, and description. room: cells."""
    taken = sum(_width(one) for one in keys)
    kept = list(keys)
    for one in reversed(keys):
        if taken <= room:
            break
        if one.action not in _STAY:
            kept.remove(one)
            taken -= _width(one)
    return kept


def _width(one: Any) -> int:
    return cell_len(one.key_display) + cell_len(one.description) + _AROUND
