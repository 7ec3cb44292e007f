"""Formats the current traffic of an appliance as lines that are drawn again and again: by topic, by
client or by process, sorted by any column. Pure: keys and values come in, a view and lines go out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from console.model.local.clients import Connection
from console.model.local.stats import ProcessRate, TopicRate
from console.show.figures import age, in_bytes, short
from console.show.output import plain

TOPICS, CLIENTS, PROCESSES = "topics", "connections", "processes"
KINDS: Final = {"t": TOPICS, "c": CLIENTS, "p": PROCESSES}
HELP: Final = "t topics, c connections, p processes; < > sort, r reverse; q quit"
_NAME: Final = 40
_MB: Final = 1e6


class Seen(NamedTuple):
    """One look. at: a time of day. since: what the rates are of, in words."""

    at: str
    since: str
    topics: Sequence[TopicRate]
    clients: Sequence[Connection]
    processes: Sequence[ProcessRate]
    requests_s: float


class _Column(NamedTuple):
    """by: what it is sorted by. told: what is seen. right: a number, the greatest of which comes
    first."""

    title: str
    by: Callable[[Any], float | str]
    told: Callable[[Any], str]
    right: bool = True


def _text(title: str, of: Callable[[Any], str]) -> _Column:
    return _Column(title, of, of, False)


def _bytes(title: str, of: Callable[[Any], float]) -> _Column:
    return _Column(title, of, lambda one: in_bytes(of(one)))


def _number(title: str, of: Callable[[Any], float]) -> _Column:
    return _Column(title, of, lambda one: short(of(one)))


COLUMNS: Final[dict[str, tuple[_Column, ...]]] = {
    TOPICS: (
        _bytes("IN/S", lambda one: one.in_mb_s * _MB),
        _bytes("OUT/S", lambda one: one.out_mb_s * _MB),
        _number("RECORDS/S", lambda one: one.records_in_s),
        _number("FETCHES/S", lambda one: one.fetches_s),
        _bytes("SIZE", lambda one: one.size_mb * _MB),
        _number("HELD", lambda one: one.held),
        _text("TOPIC", lambda one: one.topic),
    ),
    CLIENTS: (
        _bytes("IN/S", lambda one: one.in_s),
        _bytes("OUT/S", lambda one: one.out_s),
        _number("REQ/S", lambda one: one.requests_s),
        _Column("WAITS", lambda one: one.throttled_ms, lambda one: _waits(one)),
        _Column("SINCE", lambda one: one.connected_s, lambda one: age(one.connected_s)),
        _text("CLIENT", lambda one: one.client_id[:_NAME]),
        _text("ADDRESS", lambda one: one.address),
        _text("USER", lambda one: one.user[:_NAME]),
        _text("SOFTWARE", lambda one: f"{one.software} {one.version}".strip()),
    ),
    PROCESSES: (
        _number("CPU %", lambda one: one.cpu_percent),
        _bytes("MEM", lambda one: one.memory_mb * _MB),
        _number("TURNS/S", lambda one: one.turns_s),
        _number("LONGEST MS", lambda one: one.longest_turn_ms),
        _number("RESTARTS", lambda one: one.restarts),
        _Column("PID", lambda one: one.pid, lambda one: str(one.pid)),
        _text("STATE", lambda one: one.state),
        _text("PROCESS", lambda one: one.process),
    ),
}
"""By kind, in the order in which they are seen: names last, because they may be long."""


def _waits(one: Connection) -> str:
    return f"{one.throttled_ms} ms" if one.throttled_by else "-"


@dataclass(slots=True, frozen=True)
class View:
    """The chosen table: a kind, sorted by one of its columns, by the first one at first."""

    kind: str = TOPICS
    column: int = 0
    reverse: bool = False

    @property
    def by(self) -> str:
        """The title of the column."""
        return COLUMNS[self.kind][self.column].title


def pressed(view: View, key: str) -> View | None:
    """The view after a key; None: it ends. A key that means nothing changes nothing."""
    if key == "q":
        return None
    if key in KINDS:
        return View(KINDS[key])
    if key in ("<", ">"):
        step = 1 if key == ">" else -1
        return View(view.kind, (view.column + step) % len(COLUMNS[view.kind]))
    return replace(view, reverse=not view.reverse) if key == "r" else view


def sorted_by(view: View, text: str) -> View:
    """Sorted by the column whose title begins so. Raises ValueError: there is none."""
    for number, one in enumerate(COLUMNS[view.kind]):
        if one.title.lower().startswith(text.lower()):
            return replace(view, column=number)
    titles = ", ".join(one.title.lower() for one in COLUMNS[view.kind])
    raise ValueError(f"{view.kind} have no column {text!r}: {titles}")


def lines(view: View, seen: Seen, *, most: int | None = None) -> list[str]:
    """A line about all, an empty one, titles and rows; `most` of them together at most, None: all.
    Control characters are escaped."""
    columns, rows = COLUMNS[view.kind], _rows(view, seen)
    cells = [[plain(column.told(one)) for column in columns] for one in rows]
    titles = [
        f"{one.title}{'*' if number == view.column else ''}" for number, one in enumerate(columns)
    ]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    shown = [_about(view, seen, len(rows)), ""]
    for line in (titles, *cells):
        parts = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        )
        shown.append("  ".join(parts).rstrip())
    return shown[:most]


def _rows(view: View, seen: Seen) -> list[Any]:
    """Numbers from the greatest on, names from the first; equal ones as they came."""
    column = COLUMNS[view.kind][view.column]
    found: dict[str, Sequence[Any]] = {
        TOPICS: seen.topics, CLIENTS: seen.clients, PROCESSES: seen.processes,
    }  # fmt: skip
    return sorted(found[view.kind], key=column.by, reverse=column.right != view.reverse)


def _about(view: View, seen: Seen, count: int) -> str:
    in_s = sum(one.in_mb_s for one in seen.topics) * _MB
    out_s = sum(one.out_mb_s for one in seen.topics) * _MB
    return (
        f"{seen.at}  {count:,} {view.kind} by {view.by}, {seen.since}:"
        f" in {in_bytes(in_s)}/s, out {in_bytes(out_s)}/s, {short(seen.requests_s)} requests/s"
    )
