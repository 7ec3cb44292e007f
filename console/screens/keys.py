"""The line of keys at the foot: those of the place first, and as many as fit, whole.

One widget draws them all. Textual's own footer makes one for each key whenever the focus moves, and
that took longer than all else that a key leads to.
"""

from itertools import accumulate
from typing import Any, ClassVar, Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.screen import Screen
from textual.widget import Widget

_STAY: Final = ("help", "quit")
"""Actions that are shown however narrow the terminal is: the one names all the others."""
_AROUND: Final = 3  # cells: before a key, behind it, behind its words


class Shown(NamedTuple):
    """A key that works here. key_display: what it is called; enabled: whether it does something
    just now."""

    key: str
    key_display: str
    description: str
    action: str
    enabled: bool


class Keys(Widget):
    """The line of keys for the current view; a click presses one."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--words", "keys--under"}
    DEFAULT_CSS = """
    Keys {
        dock: bottom; height: 1; text-wrap: nowrap;
        color: $footer-foreground; background: $footer-background;
    }
    Keys > .keys--key {
        color: $footer-key-foreground; background: $footer-key-background; text-style: bold;
    }
    Keys > .keys--words {
        color: $footer-description-foreground; background: $footer-description-background;
    }
    Keys > .keys--under { color: $footer-key-foreground; background: $block-hover-background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Shown] = []
        self._under = -1  # which of them the mouse is on

    def on_mount(self) -> None:
        """Be told when others work."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def on_unmount(self) -> None:
        """And not any more."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def on_resize(self) -> None:
        """There may be room for more."""
        self._look()

    def _changed(self, screen: Screen[Any]) -> None:
        if screen is self.screen and screen.app.app_focus:
            self.call_after_refresh(self._look)

    def _look(self) -> None:
        found: dict[str, Shown] = {}
        for _, one, enabled, _ in self.screen.active_bindings.values():
            if one.show:
                display = self.app.get_key_display(one)
                shown = Shown(one.key, display, one.description, one.action, enabled)
                found.setdefault(one.action, shown)
        shown_now = fitting(list(found.values()), self.app.size.width)
        if shown_now != self._shown:
            self._shown = shown_now
            self.refresh()

    def render(self) -> Text:
        """All of them in one line."""
        key, words, under = (
            self.get_component_rich_style(f"keys--{name}") for name in ("key", "words", "under")
        )
        text = Text(no_wrap=True, end="")
        for number, one in enumerate(self._shown):
            is_under = number == self._under
            dim = "" if one.enabled else "dim"
            begin = len(text)
            text.append(f" {one.key_display} ", under + key if is_under else key)
            text.append(f"{one.description} ", under if is_under else words)
            text.stylize(dim, begin)
        return text

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Underlines the key that a click would press."""
        self._point(self._at(event.x))

    def on_leave(self) -> None:
        """Removes the underline."""
        self._point(-1)

    def _point(self, at: int) -> None:
        if at != self._under:
            self._under = at
            self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """As if it was pressed."""
        at = self._at(event.x)
        if at >= 0 and self._shown[at].enabled:
            self.app.simulate_key(self._shown[at].key)

    def _at(self, x: int) -> int:
        ends = accumulate(map(_width, self._shown))
        return next((number for number, end in enumerate(ends) if x < end), -1)


def fitting(keys: list[Shown], room: int) -> list[Shown]:
    """keys: in their order. room: cells."""
    taken = sum(_width(one) for one in keys)
    kept = list(keys)
    for one in reversed(keys):
        if taken <= room:
            break
        if one.action not in _STAY:
            kept.remove(one)
            taken -= _width(one)
    return kept


def _width(one: Shown) -> int:
    return cell_len(one.key_display) + cell_len(one.description) + _AROUND
