"""One event per line on stderr: for people, as logfmt with a priority when the journal reads it, or
as JSON where the settings say so.

    2026-11-22 14:03:22 netproc-0 connection-refused peer=127.0.0.1 limit=100
    <4>event=connection-refused process=netproc-0 peer=127.0.0.1 limit=100
    {"time": "2026-11-22T14:03:22.123Z", "level": "warning", "process": "netproc-0", "event": …}

Events have stable names; what a stranger can cause is logged with `event_from`, at most once a
second per (event, peer), or `event_seldom`, at most once a second per event. `lines_left_out` of
the next such line says how many were not written since. An event with the field `bound`
says that one of `config/bounds.py` was reached, which is counted each time. One write per line, so
lines of several processes do not mix. The same goes into the process's ring of events
(`ring/event_ring.py`), where it can be read without the stream. What is written depends on the
level of its logger (`ring/log_levels.py`), what is kept in the ring does not. Several threads of a
process may use its log.
"""

import json
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from appliance.ring.bound_table import BoundRegion
from appliance.ring.event_ring import EventWriter
from appliance.ring.log_levels import DEBUG, TRACE, USUAL, LogLevels, logger_of, writes
from appliance.shell.audit import Trail

ERROR: Final = 3
WARNING: Final = 4
NOTICE: Final = 5
INFO: Final = 6

_LEVELS: Final = {ERROR: "error", WARNING: "warning", NOTICE: "notice", INFO: "info"}
_HARMFUL: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters that JSON does not escape, and those that turn the direction of text."""
_EVERY_NS: Final = 1_000_000_000
_REMEMBERED: Final = 1024
_EARLY: Final = 64
_NS_MS: Final = 1_000_000
_STDERR: Final = 2


def _text(text: str) -> str:
    if text and all(c.isprintable() and c not in ' "=' for c in text):
        return text
    escaped = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text.replace('"', "'"))
    return f'"{escaped}"'


def is_journal(fd: int) -> bool:
    """True if the journal reads this stream. A terminal may have inherited the variable from a
    service, so it must name this very stream."""
    try:
        stream = os.fstat(fd)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{stream.st_dev}:{stream.st_ino}"


class Log:
    """The log of one process. Priorities are syslog's: 3 error, 4 warning, 5 notice, 6 info."""

    __slots__ = ("_early", "_fd", "_journal", "_levels", "_lock", "_logger", "_process",
                 "_ring", "_seen", "bounds", "json", "trail")  # fmt: skip

    def __init__(
        self,
        process: str,
        *,
        fd: int = _STDERR,
        journal: bool | None = None,
        ring: EventWriter | None = None,
        levels: LogLevels | None = None,
        json: bool = False,
        trail: Trail | None = None,
        bounds: BoundRegion | None = None,
    ) -> None:
        """levels: that are looked at before each line. json: how lines are written. trail: of the
        process's audit. bounds: where those reached are counted."""
        self._process = process
        self._logger = logger_of(process)
        self._levels = levels
        self.json = json
        self.trail = trail
        if trail is not None:
            trail.reach = self.reach
        self.bounds = bounds
        self._fd = fd
        self._journal = is_journal(fd) if journal is None else journal
        self._ring = ring
        self._early: list[tuple[int, int, str, dict[str, str]]] = []
        self._seen: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def attach_ring(self, ring: EventWriter, levels: LogLevels) -> None:
        """From now on events go into this ring, too: first those of before, as far as it is no more
        than a start has. levels: that hold from now on."""
        self._levels = levels
        assert self._ring is None, "a process has one"
        for one in self._early:
            ring.write_event(*one)
        self._early.clear()
        self._ring = ring

    @property
    def for_people(self) -> bool:
        """True if lines are written for a person, not for a program."""
        return not (self._journal or self.json)

    def event(self, priority: int, event: str, /, **fields: object) -> None:
        """Write one line; values are quoted where they need it, and shown with control characters
        escaped."""
        self._line(priority, event, **self._remember(priority, event, **fields))

    def _level(self) -> int:
        return USUAL if self._levels is None else self._levels.level(self._logger)

    def _line(self, priority: int, event: str, /, **told: object) -> None:
        if not writes(self._level(), priority):
            return
        shown = " ".join(f"{key}={_text(str(value))}" for key, value in told.items())
        if self.json:
            line = self._as_json(priority, event, told)
        elif self._journal:
            line = f"<{priority}>event={event} process={self._process} {shown}"
        else:
            line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {self._process} {event} {shown}"
        with suppress(OSError):  # nobody reading stderr must not stop the appliance
            os.write(self._fd, line.rstrip().encode("utf-8", "backslashreplace") + b"\n")

    def _as_json(self, priority: int, event: str, told: dict[str, object]) -> str:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"time": at, "level": _LEVELS[priority], "process": self._process, "event": event}
        fields = {key: str(value) for key, value in told.items()}
        line = json.dumps({**head, "fields": fields}, ensure_ascii=False)
        line = _HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
        return f"<{priority}>{line}" if self._journal else line

    def note_event(self, priority: int, event: str, /, **fields: object) -> None:
        """Like `event`, but a line on stderr at the level DEBUG only: those who sit there are told
        otherwise."""
        told = self._remember(priority, event, **fields)
        if self._level() >= DEBUG:
            self._line(priority, event, **told)

    def _remember(self, priority: int, event: str, /, **fields: object) -> dict[str, str]:
        """Keep it where it can be read without the stream. The fields as texts."""
        told = {key: str(value) for key, value in fields.items()}
        now_ms = time.time_ns() // _NS_MS
        with self._lock:
            self._count(fields, now_ms)
            if self._ring is not None:
                self._ring.write_event(now_ms, priority, event, told)
            elif len(self._early) < _EARLY:
                self._early.append((now_ms, priority, event, told))
        return told

    def _count(self, fields: Mapping[str, object], now_ms: int) -> None:
        bound = fields.get("bound")
        if self.bounds is not None and isinstance(bound, str):
            self.bounds.count(bound, now_ms)

    def reach(self, bound: str, why: str) -> None:
        """Like `event_of`, for a bound of which no other event tells."""
        self.event_of(WARNING, "bound-reached", bound, bound=bound, why=why)

    def event_from(self, priority: int, event: str, peer: str, /, **fields: object) -> None:
        """Like `event`, for what a peer caused: at most one line a second per (event, peer), the
        rest counted."""
        assert peer, "without a peer it is event_seldom"
        self._limited(self.event, priority, event, peer, {"peer": peer, **fields})

    def event_of(self, priority: int, event: str, about: str, /, **fields: object) -> None:
        """Like `event`, at most once a second for each (event, about), the rest counted."""
        self._limited(self.event, priority, event, about, fields)

    def event_kept(self, priority: int, event: str, /, **fields: object) -> None:
        """Like `event_seldom`, but the ring has every one."""
        assert "bound" not in fields, "it would count twice"
        told: dict[str, object] = {**self._remember(priority, event, **fields)}
        self._limited(self._line, priority, event, "", told)

    def note_of(self, priority: int, event: str, about: str, /, **fields: object) -> None:
        """Like `note`, at most once a second for each (event, about), the rest counted."""
        self._limited(self.note_event, priority, event, about, fields)

    def event_seldom(self, priority: int, event: str, /, **fields: object) -> None:
        """Like `event`, for what anybody can cause: at most one line a second per event, the rest
        counted."""
        self._limited(self.event, priority, event, "", fields)

    def _limited(
        self,
        say: Callable[..., object],
        priority: int,
        event: str,
        about: str,
        fields: dict[str, object],
    ) -> None:
        if self._level() >= TRACE:
            say(priority, event, **fields)
            return
        now = time.monotonic_ns()
        key = (event, about)
        with self._lock:
            last, unsaid = self._seen.pop(key, (now - _EVERY_NS, 0))
            if now - last < _EVERY_NS:
                self._seen[key] = (last, unsaid + 1)
                self._count(fields, time.time_ns() // _NS_MS)
                return
            self._seen[key] = (now, 0)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        if unsaid:
            fields["lines_left_out"] = unsaid
        say(priority, event, **fields)
