"""The line of tabs: one for each list, with the key that leads there."""

from typing import Final

from textual.containers import Horizontal

from console.screens import places
from console.screens.places import LISTS, Place
from console.screens.view import View, Words

_WIDE: Final = sum(len(kind) + 5 for kind in LISTS)
"""Columns from which on each tab has blanks around its key and its name."""


class Tab(Words):
    """One of the lists, to be clicked."""

    def __init__(self, kind: str) -> None:
        super().__init__(classes="tab")
        self.kind = kind

    def show_tab(self, width: int, *, is_here: bool) -> None:
        """Shows its key and its name, close together on a narrow screen. width: of the screen."""
        key, name = places.key_of(self.kind), self.kind.capitalize()
        self.set_class(is_here, "here")
        if width >= _WIDE:
            self.show_parts(f" {key} {name} ")
        else:  # one cell is all there is between two tabs
            self.show_parts((key, "bold"), name)

    def on_click(self) -> None:
        """There."""
        self.post_message(View.Go(Place(self.kind)))


class Tabs(Horizontal):
    """All of them."""

    DEFAULT_CSS = """
    Tabs { height: 1; padding: 0 1; }
    Tabs .tab { width: auto; color: $text-muted; margin-right: 1; }
    Tabs .tab.here { color: $background; background: $primary; text-style: bold; }
    Tabs.roomy .tab { margin: 0; }
    """

    def __init__(self) -> None:
        super().__init__(*map(Tab, LISTS), id="tabs")

    def show_tabs(self, width: int, here: str) -> None:
        """width: of the screen. here: the kind of the tab that is open."""
        self.set_class(width >= _WIDE, "roomy")
        for tab in self.query(Tab):
            tab.show_tab(width, is_here=tab.kind == here)
