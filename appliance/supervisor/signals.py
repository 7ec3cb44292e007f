"""How often somebody asked the appliance to end: once is in order, twice is at once.

`timeout`, a terminal and service managers may signal a process and then its group, so that one wish
arrives as two signals: what comes within half a second of the first counts as that one.
"""

import os
import select
import signal
from typing import Final

from appliance.shell import tied
from appliance.shell.log import INFO, Log

WANTED: Final = (signal.SIGTERM, signal.SIGINT)
SAME_WISH_NS: Final = 500_000_000


class Wishes:
    """The wishes to end so far: `count`. Times are ns of one monotonic clock. parent: a descriptor
    that tells of the end of the process that this one ends with; -1 without one."""

    __slots__ = ("_last", "count", "parent")

    def __init__(self) -> None:
        self.count = 0
        self.parent = -1
        self._last = 0

    def watch_parent(self, epoll: select.epoll) -> None:
        """Let epoll tell when the process ends that the environment names, if it names one."""
        self.parent = tied.opened(os.environ)
        if self.parent >= 0:
            epoll.register(self.parent, select.EPOLLIN)

    def parent_ended(self, epoll: select.epoll, log: Log) -> None:
        """A wish to end, unless somebody had one before: the second one would be "at once"."""
        log.event(INFO, "parent-ended")
        epoll.unregister(self.parent)
        os.close(self.parent)
        self.parent = -1
        self.count = max(1, self.count)

    def add_signals(self, numbers: bytes, now: int) -> None:
        """Signals that arrived by `now`, one byte each; those read at once are one wish."""
        assert now >= self._last, "the clock goes backwards"
        if not any(number in WANTED for number in numbers):
            return
        if not self.count or now - self._last >= SAME_WISH_NS:
            self.count += 1
            self._last = now
