"""Events of an appliance of this host: those of all its processes by time, read from its memory
without a request (`appliance/ring/event_ring.py`), and filters over them.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from appliance.ring.event_ring import EventReader, NotedEvent
from console.model.asking.failure import Failure, usage
from console.model.local.observed import observed

LEVELS: Final = ("error", "warning", "notice", "info")
"""The worst first, as syslog counts them from 3 on."""
_FIRST: Final = 3
KEPT: Final = 5000
_OF_TOPIC: Final = ("topic", "topics", "partition")
_OF_CLIENT: Final = ("client", "peer", "user", "member")
GRAMMAR: Final = "level:warning topic:orders group:* client:10.0.0.7 word !word"


@dataclass(slots=True, frozen=True)
class Event:
    """key: another one for each. at_ms: wall clock. level: one of LEVELS. fields: in their order;
    they come from whoever caused it, and may be anything. told: the same as a line of the log has
    them."""

    key: str
    at_ms: int
    level: str
    process: str
    event: str
    fields: Mapping[str, str]
    told: str

    @property
    def topics(self) -> tuple[str, ...]:
        """That it is about."""
        return tuple(_topics(self.fields))

    @property
    def group(self) -> str:
        """That it is about, "" for none."""
        return self.fields.get("group", "")

    @property
    def clients(self) -> tuple[str, ...]:
        """Client ids, addresses and users that it is about."""
        return tuple(self.fields[key] for key in _OF_CLIENT if key in self.fields)


@dataclass(slots=True, frozen=True)
class Wanted:
    """Which events somebody wants to see: all of it must hold. level: that or worse. topic, group,
    client: a name in which `*` stands for anything; "" for whatever. words: that are in it, or with
    `!` before them are not."""

    level: str = LEVELS[-1]
    topic: str = ""
    group: str = ""
    client: str = ""
    words: tuple[str, ...] = ()

    def keeps(self, one: Event) -> bool:
        """True if the filter keeps the event."""
        if LEVELS.index(one.level) > LEVELS.index(self.level):
            return False
        named = ((self.topic, one.topics), (self.group, (one.group,)), (self.client, one.clients))
        if not all(_is_named(pattern, names) for pattern, names in named if pattern):
            return False
        if not self.words:
            return True
        text = f"{one.level} {one.process} {one.event} {one.told}".lower()
        return all(
            (word[1:] not in text) if word[0] == "!" else word in text for word in self.words
        )


@dataclass(slots=True, frozen=True)
class EventsSeen:
    """events: the last ones, the oldest first. missed: how many were overwritten before they were
    read. is_over: the appliance has ended, these were its last."""

    events: tuple[Event, ...] = ()
    missed: int = 0
    is_over: bool = False


def made(
    key: str, at_ms: int, level: str, process: str, event: str, fields: Mapping[str, str]
) -> Event:
    """An Event of its parts."""
    told = " ".join(f"{name}={_quoted(value)}" for name, value in fields.items())
    return Event(key, at_ms, level, process, event, fields, told)


def level_of(text: str) -> str:
    """The level whose name begins so. Raises Failure."""
    for one in LEVELS:
        if text and one.startswith(text.lower()):
            return one
    raise usage(f"there is no level {text!r}: {', '.join(LEVELS)}")


def wanted(text: str, level: str = LEVELS[-1]) -> Wanted:
    """Parses a filter: `GRAMMAR`. Of a name a part is enough. level: when none is typed. Raises
    Failure.
    """
    try:
        typed = shlex.split(text)
    except ValueError:  # a quote that is still open
        typed = text.split()
    named, words = {"level": level}, []
    for one in typed:
        key, colon, value = one.partition(":")
        if colon and key == "level":
            named[key] = level_of(value) if value else level
        elif colon and key in ("topic", "group", "client"):
            named[key] = f"*{value}*" if value else ""
        elif one.strip("!"):
            words.append(one.lower())
    return Wanted(**named, words=tuple(words))


class Feed:
    """The events of the appliance in a data folder, looked at again and again; also of the one that
    takes its place. most: how many are kept."""

    def __init__(self, data_dir: str, most: int = KEPT) -> None:
        """Raises Failure: there is no appliance."""
        self.data_dir = data_dir
        self._most = most
        self._events: list[Event] = []
        self._seen = EventsSeen()
        self._open()

    def read_new(self) -> list[Event]:
        """Those that have come since the last look, by their time."""
        is_over = not self._observer.alive  # first: what it says with its last breath is read
        new, missed = self._new()
        if is_over and self._is_open_again():
            more, missed_too = self._new()
            new, missed, is_over = new + more, missed + missed_too, False
        new.sort(key=_time)
        if new:
            late = bool(self._events) and _time(new[0]) < _time(self._events[-1])
            self._events += new
            if late:
                self._events.sort(key=_time)
            del self._events[: -self._most]
        if new or missed or is_over != self._seen.is_over:
            self._seen = EventsSeen(tuple(self._events), self._seen.missed + missed, is_over)
        return new

    @property
    def pid(self) -> int:
        """The process id of the supervisor."""
        return self._observer.head.pid

    @property
    def started_ms(self) -> int:
        """When that began, by the wall clock."""
        return self._observer.head.started_ms

    @property
    def events_seen(self) -> EventsSeen:
        """As of the last look."""
        return self._seen

    def _open(self) -> None:
        observer = observed(self.data_dir)
        table = observer.tables.events
        self._observer = observer
        self._readers: dict[str, EventReader] = {one: table.reader(one) for one in table.names}

    def _is_open_again(self) -> bool:
        try:
            self._open()
        except (Failure, OSError):
            return False
        return True

    def _new(self) -> tuple[list[Event], int]:
        found, missed = [], 0
        for process, reader in self._readers.items():
            noted, more = reader.read_events()
            missed += more
            found += [_event(self._observer.head.started_ms, process, one) for one in noted]
        return found, missed


class Feeds:
    """The Feed of one appliance after the other."""

    def __init__(self) -> None:
        self._feed: Feed | None = None

    def read_events(self, data_dir: str) -> EventsSeen:
        """Reads the events of the appliance in that folder. Raises Failure."""
        if self._feed is None or self._feed.data_dir != data_dir:
            self._feed = Feed(data_dir)
        self._feed.read_new()
        return self._feed.events_seen


def _event(started_ms: int, process: str, one: NotedEvent) -> Event:
    level = LEVELS[min(max(one.priority - _FIRST, 0), len(LEVELS) - 1)]
    key = f"{started_ms} {process} {one.number}"
    return made(key, one.at_ms, level, process, one.event, dict(one.fields))


def _time(one: Event) -> int:
    return one.at_ms


def _topics(fields: Mapping[str, str]) -> Iterator[str]:
    for key in _OF_TOPIC:
        if key in fields:
            value = fields[key]
            if key == "partition":
                yield value.rpartition("-")[0] or value
            else:
                yield from value.split(",")


def _is_named(pattern: str, names: tuple[str, ...]) -> bool:
    """True if one of the names matches, whatever the case."""
    return any(one and _like(pattern).fullmatch(one) for one in names)


@lru_cache
def _like(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.IGNORECASE | re.DOTALL)


def _quoted(value: str) -> str:
    bare = value and value.isprintable() and not any(sign in value for sign in ' "=')
    return value if bare else '"' + value.replace('"', "'") + '"'
