"""The audit: who logged in, who failed to, who was denied what, who changed what; the newest last
(docs/audit.md)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from appliance.authorization.words import KINDS
from appliance.history.audit_log import LEFT_OUT, Entry
from console.model.access.access import Question
from console.model.access.acls import Target, operation_of
from console.model.access.audit import change_text, entry_text
from console.model.access.audit_memory import CHANGED, DENIED, FAILED, LOGIN, MOST, AuditSeen
from console.model.asking.failure import Failure
from console.screens.access import around
from console.screens.access.users import seconds_of
from console.screens.actions import IN_AUDIT, bindings
from console.screens.places import CAN, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, View, Words
from console.show.figures import moment, some

FOREIGN: Final = "the audit is read on the host of an appliance"
_ALL, _BAD, _CHANGES = "all", "failed logins and denials", "changes"
_KEPT: Final = {_ALL: (), _BAD: (FAILED, DENIED), _CHANGES: (CHANGED,)}
_INKS: Final = {FAILED: "bad", DENIED: "warn", CHANGED: "good", LOGIN: "dim"}
_WIDE: Final = 110
_COLUMNS: Final = (
    Column("TIME", 8, below_width=_WIDE),
    Column("TIME", 19, from_width=_WIDE),
    Column("EVENT", 13),
    Column("WHO", 18, below_width=_WIDE),
    Column("WHO", 30, from_width=_WIDE),
    Column("FROM", 16, from_width=90),
    Column("WHAT", 0),
)
_NOTHING: Final = AuditSeen()
_KINDS: Final = {one: number for number, one in enumerate(KINDS)}


class AuditView(View):
    """The list, which follows while the cursor is at its end. Enter on a denial tells why."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_AUDIT)
    DEFAULT_CSS = """
    AuditView #about {
        height: auto; max-height: 7; padding: 0 1; border-top: solid $foreground 20%;
    }
    AuditView.large #about { height: 6; }
    """
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"audit": "Audit  {}", "about": "This entry"}

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._level = _ALL
        self._follows = True
        self._found: dict[str, Entry] = {}

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="audit")
        yield Words(name="about")

    def paint(self) -> None:
        rows = self.query_one("#audit", Rows)
        seen = self.world.audit.shown.value
        kinds = _KEPT[self._level]
        found = {
            key: one
            for key, one in (seen or _NOTHING).entries.items()
            if (not kinds or one["event"] in kinds or one.get("of") in kinds)
            and keeps(self.filter_text, f"{one['event']} {entry_text(one)}")
        }
        self._found = found
        rows.show_rows(
            list(found), lambda key: _cells(found[key]), lambda key, n: _by(key, found[key], n),
            empty=self._nothing(seen),
        )  # fmt: skip
        last = next(reversed(found), None)
        if self._follows and last is not None and rows.key != last:
            rows.action_end(True)
        self._summarize(seen)
        self._about()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another line is under the cursor: who leaves the end reads."""
        event.stop()
        self._follows = event.rows.key == next(reversed(self._found), None)
        self._summarize(self.world.audit.shown.value)
        self._about()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To the right that was denied."""
        event.stop()
        self.action_ask()

    def action_other(self) -> None:
        """The certificates."""
        around.go_to_next(self)

    def action_tail(self) -> None:
        """To the end, and on with it."""
        self.query_one(Rows).action_end(True)

    def action_level(self) -> None:
        """The next kind of entries."""
        kinds = list(_KEPT)
        self._level = kinds[(kinds.index(self._level) + 1) % len(kinds)]
        self.paint()

    def action_ask(self) -> None:
        """To what decides about the denial under the cursor now."""
        one = self._found.get(self.query_one(Rows).key or "")
        asked = denied(one) if one is not None else None
        if asked is None:
            self.notify("only a denial has a reason", markup=False)
        else:
            self.post_message(self.Go(Place(CAN, asked.text)))

    def _nothing(self, seen: AuditSeen | None) -> str:
        if self.world.is_foreign:
            return FOREIGN
        if seen is None:
            return self.waiting()
        return "no matching entries"

    def _summarize(self, seen: AuditSeen | None) -> None:
        parts: list[Part] = [*around.titles(self.place.kind)]
        if seen is not None:
            last = "last " if len(seen.entries) == MOST else ""
            of = f"{len(self._found)} of {last}" if len(self._found) != len(seen.entries) else last
            parts.append(f"{of}{some(len(seen.entries), 'entry')}".replace("entrys", "entries"))
            parts.append((f"  {self._level}", "dim"))
        if not self._follows:
            parts.append(("  paused: t follows", "yellow"))
        self.query_one("#summary", Words).show_parts(*parts)

    def _about(self) -> None:
        """Shows the fields of the entry under the cursor."""
        one, about = (
            self._found.get(self.query_one(Rows).key or ""),
            self.query_one("#about", Words),
        )
        if one is None:
            about.show_parts("")
            return
        parts: list[Part] = [(f"{one['time']} {one['event']}\n", "bold")]
        for key, value in one.items():
            if key not in ("time", "event", "changes"):
                parts += [(f"{key} ", "dim"), f"{value}  "]
        parts += [f"\n{change_text(change)}" for change in _changes(one)[:3]]
        about.show_parts(*parts)


def denied(entry: Entry) -> Question | None:
    """The question that a denial answers with no; None of another entry."""
    if entry["event"] != DENIED:
        return None
    kind = _KINDS.get(str(entry.get("resource")))
    name, who = str(entry.get("name", "")), str(entry.get("principal", ""))
    try:
        operation = operation_of(str(entry.get("operation", "")))
    except Failure:
        return None
    if kind is None or not name or ":" not in who:
        return None
    return Question(who, operation, Target(kind, name), str(entry.get("address") or "*"))


def _changes(entry: Entry) -> list[Any]:
    found = entry.get("changes")
    return found if isinstance(found, list) else []


def _cells(one: Entry) -> tuple[Cell, ...]:
    event = str(one["event"])
    at_s = seconds_of(str(one["time"]))
    when = moment(int(at_s * 1000)) if at_s else str(one["time"])
    who = str(one.get("principal", ""))
    return (
        when.rpartition(" ")[2], when, (event, _INKS.get(event, "")), who, who,
        str(one.get("address", "")), _what(one),
    )  # fmt: skip


def _what(one: Entry) -> str:
    event = one["event"]
    if event == DENIED:
        return f"{one.get('operation', '')} {one.get('resource', '')} {one.get('name', '')}"
    if event == FAILED:
        return f"{one.get('mechanism', '')}: {one.get('why', '')}"
    if event == LOGIN:
        return f"{one.get('mechanism', '')} on {one.get('listener', '')}"
    if event == CHANGED:
        changes = _changes(one)
        first = f": {change_text(changes[0]).strip('[]')}" if changes else ""
        more = len(changes) - 1 + int(one.get("more") or 0)
        return f"{one.get('request', '')}{first}{f' and {more} more' if more > 0 else ''}"
    if event == LEFT_OUT:
        return f"{one.get('count')} more of {one.get('of')}"
    return entry_text(one)


def _by(key: str, one: Entry, column: int) -> str | int:
    values: tuple[str | int, ...] = (
        int(key), int(key), str(one["event"]), str(one.get("principal", "")),
        str(one.get("principal", "")), str(one.get("address", "")), _what(one),
    )  # fmt: skip
    return values[column]
