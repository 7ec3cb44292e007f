"""The door through which time comes in.

Every machine takes `now_ms` (wall clock, record timestamps and retention) or `now_ns`
(monotonic, timeouts and latencies) as an argument; only a shell holds a Clock.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings that must not be mixed: one for people and records, one for durations."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may jump either way."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds of a clock that never goes back and whose zero means nothing."""
        ...


class OsClock:
    """The machine's own clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic_ns = staticmethod(time.monotonic_ns)
