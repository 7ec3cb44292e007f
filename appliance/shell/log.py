"""One event per line on stderr: for people, or as logfmt with a priority when the journal reads it.

    14:03:22 netproc-0 connection-refused peer=127.0.0.1 limit=100
    <4>event=connection-refused process=netproc-0 peer=127.0.0.1 limit=100

Events have stable names; what a stranger can cause is logged with `event_from`, at most once a
second per (event, peer). One write per line, so lines of several processes do not mix.
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


class Log:
    """The log of one process. Priorities are syslog's: 3 error, 4 warning, 5 notice, 6 info."""

    __slots__ = ("_fd", "_journal", "_process", "_seen")

    def __init__(self, process: str, *, fd: int = _STDERR, journal: bool | None = None) -> None:
        self._process = process
        self._fd = fd
        self._journal = "JOURNAL_STREAM" in os.environ if journal is None else journal
        self._seen: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()

    def event(self, priority: int, event: str, /, **fields: object) -> None:
        """Write one line; values are quoted where they need it, and shown with control characters
        escaped."""
        shown = " ".join(f"{key}={_text(value)}" for key, value in fields.items())
        if self._journal:
            line = f"<{priority}>event={event} process={self._process} {shown}"
        else:
            line = f"{time.strftime('%H:%M:%S')} {self._process} {event} {shown}"
        with suppress(OSError):  # nobody reading stderr must not stop the appliance
            os.write(self._fd, line.rstrip().encode("utf-8", "backslashreplace") + b"\n")

    def event_from(self, priority: int, event: str, peer: str, /, **fields: object) -> None:
        """Like `event`, for what a peer caused: at most one line a second per (event, peer), the
        rest counted."""
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
            fields["unsaid"] = unsaid
        self.event(priority, event, peer=peer, **fields)
