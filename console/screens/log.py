"""Log: what happened in the appliance, with what this console changed between it, the newest last;
or all that the console asked, with the command lines that do the same."""

import time
from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from console.called import NAME, called, typed
from console.model.asking.failure import Failure
from console.model.local import events
from console.model.local.events import GRAMMAR, LEVELS, Event, EventsSeen, Wanted, made
from console.screens import lines
from console.screens.actions import IN_LOG, bindings
from console.screens.journal import Entry, Journal
from console.screens.places import GROUP, TOPIC, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, View, Words
from console.screens.world import World
from console.show.figures import moment, some, took

FOREIGN: Final = "events are read on the host of an appliance"
HAPPENED, ASKED = "what happened", "what this console asked"
_MS: Final = 1000
_ABOUT: Final = 8
"""Lines of what is under the cursor."""
_HAPPENED: Final = (
    Column("TIME", 8),
    Column("LEVEL", 7),
    Column("PROCESS", 10, from_width=100),
    Column("EVENT", 18, below_width=100),
    Column("EVENT", 24, from_width=100),
    Column("WHAT", 0),
)
_ASKED: Final = (
    Column("LAST", 8),
    Column("WHAT", 18),
    Column("TIMES", 5, right=True),
    Column("TOOK", 8, right=True),
    Column("COMMAND OR PROBLEM", 0),
)
_MINE: Final = "console "
"""How keys of what this console did begin, among those of events."""
_NOTHING: Final = EventsSeen()
_INKS: Final = {"error": "bad", "warning": "warn", "info": "dim"}


class LogView(View):
    """The event log, which follows while the cursor is at its end. Enter leads to the topic or the
    group of an event; a command line under the cursor can be copied.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_LOG)
    DEFAULT_CSS = """
    LogView #about {
        height: auto; max-height: 8; padding: 0 1; border-top: solid $foreground 20%;
    }
    LogView.large #about { height: 6; }
    """
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"log": "Log  {}", "about": "Under the cursor"}
    summary_in: ClassVar[str] = "log"

    def __init__(self, place: Place, world: World, journal: Journal) -> None:
        super().__init__(place, world)
        self._journal = journal
        self._which = HAPPENED
        self._level = LEVELS[-1]
        self._follows = True
        self._found: dict[str, Event] = {}
        self._kept_of: tuple[EventsSeen, Wanted] | None = None
        self._kept: list[Event] = []

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_HAPPENED, name="log", empty="")
        yield Words(name="about")

    def paint(self) -> None:
        self.query_one("#summary", Words).show_parts(*self._summary())
        if self._which == HAPPENED:
            self._paint_happened()
        else:
            self._paint_asked()
        self._about()

    # What keys do -------------------------------------------------------------------------------

    def action_level(self) -> None:
        """One level less is shown; after errors alone, all."""
        self._level = LEVELS[LEVELS.index(self._level) - 1]
        self.paint()

    def action_tail(self) -> None:
        """To the end, and on with it."""
        self.query_one(Rows).action_end(True)

    def action_other(self) -> None:
        """The other text."""
        self._which = ASKED if self._which == HAPPENED else HAPPENED
        rows = self.query_one(Rows)
        rows.set_columns(_HAPPENED if self._which == HAPPENED else _ASKED)
        self.paint()
        rows.action_end(self._which == HAPPENED)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another line is under the cursor: who leaves the end reads."""
        event.stop()
        if self._which == HAPPENED:
            self._follows = self.query_one(Rows).key == next(reversed(self._found), None)
        self.query_one("#summary", Words).show_parts(*self._summary())
        self._about()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To what it is about."""
        event.stop()
        one = self._found.get(event.key) if self._which == HAPPENED else None
        if one is not None and one.group:
            self.post_message(self.Go(Place(GROUP, one.group)))
        elif one is not None and one.topics:
            self.post_message(self.Go(Place(TOPIC, one.topics[0])))
        else:
            self.notify("it is about no topic and no group", markup=False)

    def line(self) -> str:
        """The command of what is under the cursor where this console did it; else the one that
        shows the same events, "" where there is none."""
        if (mine := self._chosen()) is not None:
            return mine.line
        if self._which == ASKED or not self.world.data_dir:
            return ""
        level = f" --level {self._level}" if self._level != LEVELS[-1] else ""
        words = "".join(f" {lines.quoted(one)}" for one in self.filter_text.split())
        where = f" --data {lines.quoted(self.world.data_dir)}"
        return typed(f"penstock event list -f{level}{words}{where}")

    def grammar(self) -> list[tuple[str, str]]:
        return [("Filter", GRAMMAR)]

    # What happened ------------------------------------------------------------------------------

    @property
    def _seen(self) -> EventsSeen:
        return self.world.events.shown.value or _NOTHING

    @property
    def _wanted(self) -> Wanted:
        """Raises Failure: what is typed says nothing."""
        return events.wanted(self.filter_text, self._level)

    def _paint_happened(self) -> None:
        rows = self.query_one(Rows)
        try:
            wanted = self._wanted
        except Failure as wrong:
            self._found = {}
            rows.show_rows([], lambda key: (key,), empty=wrong.message)
            return
        mine = [_mine(key, one) for key, one in self._journal.entries.items() if _is_told(one)]
        found = self._keep(wanted)
        found += [one for one in mine if _is_mine_wanted(wanted, one)]
        found.sort(key=lambda one: one.at_ms)
        self._found = told = {one.key: one for one in found}
        rows.show_rows(
            list(told), lambda key: _cells(told[key]), lambda key, n: _by(told[key], n),
            empty=self._nothing(),
        )  # fmt: skip
        if self._follows and told and rows.key != found[-1].key:
            rows.action_end(True)

    def _keep(self, wanted: Wanted) -> list[Event]:
        """The events that are wanted; looked through only when there are others, or other wishes:
        there may be thousands, and a view is painted often."""
        seen, of = self._seen, self._kept_of
        if of is None or of[0] is not seen or of[1] != wanted:
            self._kept_of = seen, wanted
            self._kept = [one for one in seen.events if wanted.keeps(one)]
        return [*self._kept]

    def _nothing(self) -> str:
        """Why nothing is listed."""
        if self.world.is_foreign:
            return "this console changed nothing"
        if self.world.events.shown.value is None:
            return self.waiting()
        return "no matching events"

    def _summary(self) -> tuple[Part, ...]:
        changed = sum(one.is_change and not one.problem for one in self._journal.entries.values())
        mine = f"{some(changed, 'change')} of this console"
        if self._which == ASKED:
            return (f"What this console asked; /changed: {mine}", "dim"), _other(HAPPENED)
        if self.world.is_foreign:
            return (f"{FOREIGN}; {mine}", "yellow"), _other(ASKED)
        seen = self._seen
        parts: list[Part] = [(f"{some(len(self._found), 'line')}, {mine}", "dim")]
        if self._level != LEVELS[-1]:
            parts.append(
                (f"  {self._level}{' or worse' if self._level != LEVELS[0] else ' alone'}", "")
            )
        if self.filter_text:
            parts.append((f"  /{self.filter_text}  (Esc shows all)", "dim"))
        if seen.missed:
            parts.append((f"  {seen.missed} came too fast to be read", "yellow"))
        if seen.is_over:
            parts.append(("  the appliance has ended: its last words", "bold red"))
        if not self._follows:
            return (*parts, ("  paused: t follows", "yellow"))
        return (*parts, _other(ASKED))

    def _chosen(self) -> Entry | None:
        """The entry under the cursor where this console did it."""
        key = self.query_one(Rows).key or ""
        if self._which == HAPPENED:
            key = key.removeprefix(_MINE) if key.startswith(_MINE) else ""
        return self._journal.entries.get(key)

    def _about(self) -> None:
        """Shows the entry under the cursor in full, as far as there is room."""
        about, mine = self.query_one("#about", Words), self._chosen()
        one = self._found.get(self.query_one(Rows).key or "") if self._which == HAPPENED else None
        if mine is not None:
            came = mine.problem or mine.outcome
            line = f"\n$ {mine.line}" if mine.line else ""
            about.show_parts(f"{mine.what}: {came}" if came else mine.what, (line, "dim"))
        elif one is not None:
            head = f"{moment(one.at_ms)}.{one.at_ms % _MS:03} {one.process} {one.level} {one.event}"
            about.show_parts((head, "bold"), *_fields(one))
        else:
            about.show_parts("")

    # What this console asked --------------------------------------------------------------------

    def _paint_asked(self) -> None:
        found = {
            key: one
            for key, one in self._journal.entries.items()
            if keeps(self.filter_text, _text(one))
        }
        shown = sorted(found, key=lambda key: -found[key].first_s)
        self.query_one(Rows).show_rows(
            shown, lambda key: _asked_cells(found[key]), lambda key, n: _asked_by(found[key], n),
            empty="nothing was asked yet",
        )  # fmt: skip


def _other(which: str) -> Part:
    return f"   (v: {which})", "dim"


def _fields(one: Event) -> list[Part]:
    """Each by itself; of many lines the last, where a traceback says what it was."""
    parts: list[Part] = ["\n"]
    for key, value in one.fields.items():
        parts += [(f"{key} ", "dim"), f"{value.rstrip()}  "]
    text = "".join(part if isinstance(part, str) else part[0] for part in parts).splitlines()
    if len(text) <= _ABOUT:
        return parts
    return [f"\n{text[1]}\n…\n", "\n".join(text[-(_ABOUT - 4) :])]


def _is_told(one: Entry) -> bool:
    """True if the entry belongs to the events: a change or a failure, not a repeated request."""
    return one.is_change or bool(one.problem)


def _mine(key: str, one: Entry) -> Event:
    told = {"problem": one.problem} if one.problem else {"outcome": one.outcome}
    level = "warning" if one.problem else "notice"
    fields = {**told, "$": one.line}
    return made(f"{_MINE}{key}", int(one.last_s * _MS), level, "console", one.what, fields)


def _is_mine_wanted(wanted: Wanted, one: Event) -> bool:
    """Names are looked for in the command line: it has no fields."""
    text = f"{one.event} {one.told}".lower()
    named = (wanted.topic, wanted.group, wanted.client)
    plain = Wanted(level=wanted.level, words=wanted.words)
    return plain.keeps(one) and all(name.strip("*").lower() in text for name in named)


def _cells(one: Event) -> tuple[Cell, ...]:
    ink = _INKS.get(one.level, "")
    told: Cell = one.told
    level = one.level
    if one.process == "console":
        told = one.fields.get("problem") or _short(one.fields["$"])
        level, ink = ("failed", "bad") if "problem" in one.fields else ("changed", "good")
    event = (one.event, ink)
    return _clock(one.at_ms), (level, ink), one.process, event, event, told


def _short(line: str) -> str:
    """A command without the path to it: below, it stands as it is to be typed."""
    path = called()
    return f"{NAME}{line.removeprefix(path)}" if line.startswith(path) else line


def _clock(at_ms: int) -> str:
    return moment(at_ms).rpartition(" ")[2]


def _by(one: Event, column: int) -> str | int:
    values: tuple[str | int, ...] = (
        one.at_ms, -LEVELS.index(one.level), one.process, one.event, one.event, one.told,
    )  # fmt: skip
    return values[column]


def _asked_cells(one: Entry) -> tuple[Cell, ...]:
    at = time.strftime("%H:%M:%S", time.localtime(one.last_s))
    lasted = took(one.took_s) if one.took_s else ""
    told: Cell = (one.problem, "bad") if one.problem else _short(one.line) or (one.outcome, "dim")
    return at, (one.what, "warn" if one.is_change else ""), str(one.times), lasted, told


def _text(one: Entry) -> str:
    """The text that a filter searches."""
    return f"{one.what} {one.line} {one.problem} {'changed' if one.is_change else ''}"


def _asked_by(one: Entry, column: int) -> str | float:
    values: tuple[str | float, ...] = (
        one.last_s, one.what, one.times, one.took_s, one.problem or one.line,
    )  # fmt: skip
    return values[column]
