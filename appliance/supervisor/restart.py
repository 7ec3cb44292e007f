"""When a dead child may come back: at once the first time, later and later when it goes on dying,
never beyond a limit. A value machine: time is an argument.

Called by `supervisor/main.py` for each child.
"""

from collections import deque
from typing import Final

FIRST_DELAY_NS: Final = 100_000_000
LONGEST_DELAY_NS: Final = 5_000_000_000


class RestartPolicy:
    """The deaths of one place within a sliding window."""

    __slots__ = ("_deaths", "_limit", "_window_ns")

    def __init__(self, *, limit: int, window_ns: int) -> None:
        self._deaths: deque[int] = deque()
        self._limit = limit
        self._window_ns = window_ns

    def died(self, now_ns: int) -> int | None:
        """Count a death. The moment (ns) at which a successor may start, or None: too many, isolate
        the place."""
        deaths = self._deaths
        deaths.append(now_ns)
        while deaths[0] <= now_ns - self._window_ns:
            deaths.popleft()
        if len(deaths) >= self._limit:
            return None
        if len(deaths) == 1:
            return now_ns
        return now_ns + min(FIRST_DELAY_NS << (len(deaths) - 2), LONGEST_DELAY_NS)

    @property
    def recent(self) -> int:
        """Deaths within the window that ended with the last one."""
        return len(self._deaths)
