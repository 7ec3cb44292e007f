"""The door through which time comes in.

Every machine takes `now_ms` (wall clock, record timestamps and retention) or `now_ns`
(monotonic, timeouts and latencies) as an argument; only a shell holds a Clock.
"""

import mmap
import os
import time
from typing import Final, Protocol

VARIABLE: Final = "PENSTOCK_TEST_CLOCK"
_SIZE: Final = 8  # milliseconds, signed, little-endian


class Clock(Protocol):
    """Two readings that must not be mixed: one for people and records, one for durations."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may jump either way."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds of a clock that never goes back and whose zero means nothing."""
        ...


class OsClock:
    """The machine's own clocks. is_turned: whether a jump of the wall clock is meant."""

    __slots__ = ()
    is_turned = False

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic_ns = staticmethod(time.monotonic_ns)


class TurnedClock(OsClock):
    """The clock of a test's appliance: the wall clock is ahead of the machine's by the content of a
    file, which the test writes on purpose. Timers, sessions and timeouts among them, are due no
    sooner.

    The file is in the memory of every process, so a turn that begins after it was written has the
    new time. Its name is in the environment, and so with all children; where none is, nobody looks
    and nothing is paid.
    """

    __slots__ = ("_ahead",)
    is_turned = True

    def __init__(self, path: str) -> None:
        """Raises OSError, and ValueError when that is no file of eight bytes."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_size != _SIZE:
                raise ValueError(f"{VARIABLE}={path} is no file of {_SIZE} bytes")
            self._ahead = memoryview(mmap.mmap(fd, _SIZE, prot=mmap.PROT_READ)).cast("q")
        finally:
            os.close(fd)

    def wall_ms(self) -> int:
        return OsClock.wall_ms(self) + self._ahead[0]


def clock_here() -> OsClock:
    """The machine's clocks, unless the environment names the file of a turned one. Raises as
    TurnedClock does."""
    path = os.environ.get(VARIABLE)
    return TurnedClock(path) if path else OsClock()
