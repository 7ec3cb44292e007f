"""How often somebody asked the appliance to end: once is in order, twice is at once.

`timeout`, a terminal and service managers may signal a process and then its group, so that one wish
arrives as two signals: what comes within half a second of the first counts as that one.
"""

import signal
from typing import Final

WANTED: Final = (signal.SIGTERM, signal.SIGINT)
SAME_WISH_NS: Final = 500_000_000


class Wishes:
    """The wishes to end so far: `count`. Times are ns of one monotonic clock."""

    __slots__ = ("_last", "count")

    def __init__(self) -> None:
        self.count = 0
        self._last = 0

    def heard(self, numbers: bytes, now: int) -> None:
        """Signals that arrived by `now`, one byte each; those read at once are one wish."""
        assert now >= self._last, "the clock goes backwards"
        if not any(number in WANTED for number in numbers):
            return
        if not self.count or now - self._last >= SAME_WISH_NS:
            self.count += 1
            self._last = now
