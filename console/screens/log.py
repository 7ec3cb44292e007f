"""Log: what the console itself did, the last first, with the command line that does the same."""

import time
from typing import ClassVar, Final

from textual.app import ComposeResult

from console.screens.journal import Entry, Journal
from console.screens.places import Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.screens.world import World
from console.show.figures import some, took

_COLUMNS: Final = (
    Column("LAST", 8),
    Column("WHAT", 18),
    Column("TIMES", 5, right=True),
    Column("TOOK", 8, right=True),
    Column("COMMAND OR PROBLEM", 0),
)


class LogView(View):
    """The list; what is under the cursor can be copied."""

    DEFAULT_CSS = "LogView #about { height: 2; color: $text-muted; }"
    has_filter: ClassVar[bool] = True

    def __init__(self, place: Place, world: World, journal: Journal) -> None:
        super().__init__(place, world)
        self._journal = journal

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="log", opens=False, empty="nothing was asked yet")
        yield Words(name="about")

    def paint(self) -> None:
        found = {
            key: one
            for key, one in self._journal.entries.items()
            if keeps(self.filter_text, _text(one))
        }
        changed = sum(one.is_change and not one.problem for one in self._journal.entries.values())
        said = f"What this console did: {some(changed, 'change')}, /changed shows them alone."
        self.query_one(Words).say((said, "dim"))
        shown = sorted(found, key=lambda key: -found[key].first_s)
        rows = self.query_one(Rows)
        rows.show(shown, lambda key: _cells(found[key]), lambda key, n: _by(found[key], n))
        one = found.get(rows.key or "")
        came = f": {one.problem or one.outcome}" if one and (one.problem or one.outcome) else ""
        self.query_one("#about", Words).say((f"{one.what}{came}" if one else "", ""))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another entry is under the cursor."""
        event.stop()
        self.paint()

    def line(self) -> str:
        """The command of the entry under the cursor, "" when it has none."""
        key = self.query_one(Rows).key
        return self._journal.entries[key].line if key in self._journal.entries else ""


def _cells(one: Entry) -> tuple[Cell, ...]:
    at = time.strftime("%H:%M:%S", time.localtime(one.last_s))
    lasted = took(one.took_s) if one.took_s else ""
    told: Cell = (one.problem, "bad") if one.problem else one.line
    return at, (one.what, "warn" if one.is_change else ""), str(one.times), lasted, told


def _text(one: Entry) -> str:
    """What a filter looks at."""
    return f"{one.what} {one.line} {one.problem} {'changed' if one.is_change else ''}"


def _by(one: Entry, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        one.last_s, one.what, one.times, one.took_s, one.problem or one.line,
    )  # fmt: skip
    return values[column]
