"""One event per line on stderr: for people, or as logfmt with a priority when the journal reads it.

    2026-11-22 14:03:22 netproc-0 connection-refused peer=127.0.0.1 limit=100
    <4>event=connection-refused process=netproc-0 peer=127.0.0.1 limit=100

Events have stable names; what a stranger can cause is logged with `event_from`, at most once a
second per (event, peer), or `event_seldom`, at most once a second per event. `lines_left_out` of
the next such line says how many were not written since. One write per line, so lines of several
processes do not mix.
"""

import os
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Final

ERROR: Final = 3
WARNING: Final = 4
NOTICE: Final = 5
INFO: Final = 6

_EVERY_NS: Final = 1_000_000_000
_REMEMBERED: Final = 1024
_STDERR: Final = 2


def _text(value: object) -> str:
    text = str(value)
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

    __slots__ = ("_fd", "_journal", "_process", "_seen")

    def __init__(self, process: str, *, fd: int = _STDERR, journal: bool | None = None) -> None:
        self._process = process
        self._fd = fd
        self._journal = _is_journal(fd) if journal is None else journal
        self._seen: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()

    @property
    def is_journal(self) -> bool:
        """Whether lines are written for the journal."""
        return self._journal

    def event(self, priority: int, event: str, /, **fields: object) -> None:
        """Write one line; values are quoted where they need it, and shown with control characters
        escaped."""
        shown = " ".join(f"{key}={_text(value)}" for key, value in fields.items())
        if self._journal:
            line = f"<{priority}>event={event} process={self._process} {shown}"
        else:
            line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {self._process} {event} {shown}"
        with suppress(OSError):  # nobody reading stderr must not stop the appliance
            os.write(self._fd, line.rstrip().encode("utf-8", "backslashreplace") + b"\n")

    def event_from(self, priority: int, event: str, peer: str, /, **fields: object) -> None:
        """Like `event`, for what a peer caused: at most one line a second per (event, peer), the
        rest counted."""
        assert peer, "without a peer it is event_seldom"
        self._limited(priority, event, peer, {"peer": peer, **fields})

    def event_seldom(self, priority: int, event: str, /, **fields: object) -> None:
        """Like `event`, for what anybody can cause: at most one line a second per event, the rest
        counted."""
        self._limited(priority, event, "", fields)

    def _limited(self, priority: int, event: str, peer: str, fields: dict[str, object]) -> None:
        now = time.monotonic_ns()
        key = (event, peer)
        last, unsaid = self._seen.pop(key, (now - _EVERY_NS, 0))
        if now - last < _EVERY_NS:
            self._seen[key] = (last, unsaid + 1)
            return
        self._seen[key] = (now, 0)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        if unsaid:
            fields["lines_left_out"] = unsaid
        self.event(priority, event, **fields)
