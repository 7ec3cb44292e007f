"""One event per line on stderr: for people, or as logfmt with a priority when the journal reads it.

    2026-11-22 14:03:22 netproc-0 connection-refused peer=127.0.0.1 limit=100
    <4>event=connection-refused process=netproc-0 peer=127.0.0.1 limit=100

Events have stable names; what a stranger can cause is logged with `event_from`, at most once a
second per (event, peer), or `event_seldom`, at most once a second per event. `lines_left_out` of
the next such line says how many were not written since. One write per line, so lines of several
processes do not mix. The same goes into the process's ring of events (`ring/event_ring.py`), where
it can be read without the stream. Several threads of a process may use its log.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from appliance.ring.event_ring import EventWriter

ERROR: Final = 3
WARNING: Final = 4
NOTICE: Final = 5
INFO: Final = 6

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


def _is_journal(fd: int) -> bool:
    """Whether the journal reads it. A terminal may have inherited the variable from a service, so
    it must name this very stream."""
    try:
        stream = os.fstat(fd)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{stream.st_dev}:{stream.st_ino}"


class Log:
    """The log of one process. Priorities are syslog's: 3 error, 4 warning, 5 notice, 6 info."""

    __slots__ = ("_early", "_fd", "_journal", "_lock", "_process", "_ring", "_seen")

    def __init__(
        self,
        process: str,
        *,
        fd: int = _STDERR,
        journal: bool | None = None,
        ring: EventWriter | None = None,
    ) -> None:
        self._process = process
        self._fd = fd
        self._journal = _is_journal(fd) if journal is None else journal
        self._ring = ring
        self._early: list[tuple[int, int, str, dict[str, str]]] = []
        self._seen: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, ring: EventWriter) -> None:
        """From now on events go into this ring, too: first those of before, as far as it is no more
        than a start has."""
        assert self._ring is None, "a process has one"
        for one in self._early:
            ring.write(*one)
        self._early.clear()
        self._ring = ring

    @property
    def is_journal(self) -> bool:
        """Whether lines are written for the journal."""
        return self._journal

    def event(self, priority: int, event: str, /, **fields: object) -> None:
        """Write one line; values are quoted where they need it, and shown with control characters
        escaped."""
        self._line(priority, event, **self.note(priority, event, **fields))

    def _line(self, priority: int, event: str, /, **told: object) -> None:
        shown = " ".join(f"{key}={_text(str(value))}" for key, value in told.items())
        if self._journal:
            line = f"<{priority}>event={event} process={self._process} {shown}"
        else:
            line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {self._process} {event} {shown}"
        with suppress(OSError):  # nobody reading stderr must not stop the appliance
            os.write(self._fd, line.rstrip().encode("utf-8", "backslashreplace") + b"\n")

    def note(self, priority: int, event: str, /, **fields: object) -> dict[str, str]:
        """Like `event`, but no line on stderr: those who sit there are told otherwise. The fields
        as texts."""
        told = {key: str(value) for key, value in fields.items()}
        now_ms = time.time_ns() // _NS_MS
        with self._lock:
            if self._ring is not None:
                self._ring.write(now_ms, priority, event, told)
            elif len(self._early) < _EARLY:
                self._early.append((now_ms, priority, event, told))
        return told

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
        told: dict[str, object] = {**self.note(priority, event, **fields)}
        self._limited(self._line, priority, event, "", told)

    def note_of(self, priority: int, event: str, about: str, /, **fields: object) -> None:
        """Like `note`, at most once a second for each (event, about), the rest counted."""
        self._limited(self.note, priority, event, about, fields)

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
        now = time.monotonic_ns()
        key = (event, about)
        with self._lock:
            last, unsaid = self._seen.pop(key, (now - _EVERY_NS, 0))
            if now - last < _EVERY_NS:
                self._seen[key] = (last, unsaid + 1)
                return
            self._seen[key] = (now, 0)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        if unsaid:
            fields["lines_left_out"] = unsaid
        say(priority, event, **fields)
