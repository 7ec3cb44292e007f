"""Full passes of Python's garbage collector, at times when nobody waits for them.

Reference counts free nearly everything; the collector finds cycles. Its full pass looks at every
object of the process: 85 to 290 ms of processor time in an I/O process with 10,000 partitions and a
few long requests, in the middle of a turn. A child therefore puts full passes off: the two younger
generations are collected as ever, the oldest one when the loop has had nothing to do for a while,
and in a busy process when it has grown by very many objects (decision 109).
"""

import gc
from collections.abc import Callable
from typing import Final

NEVER: Final = 1 << 30
EVERY_NS: Final = 5_000_000_000
"""A full pass follows the one before no sooner."""
WORTH: Final = 10
"""Passes of the middle generation since the last full one, each some 7,000 new objects: with fewer
an idle process has nothing to look for."""
GROWN: Final = 100
"""The same for a busy one: 700,000 objects more, which may be garbage."""


def put_off_full_passes() -> None:
    """Let the interpreter begin no full pass by itself in this process; `Loop` does."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


class FullPasses:
    """The full passes of one process, which has put them off or has none here."""

    __slots__ = ("_collect", "_count", "_last_ns", "is_on")

    def __init__(
        self, collect: Callable[[], int] = gc.collect, count: Callable[[], int] | None = None
    ) -> None:
        """collect, count: the collector's; a test has its own. count: passes of the middle
        generation since the last full one."""
        self.is_on = count is not None or gc.get_threshold()[2] == NEVER
        self._collect = collect
        self._count = count or _passes_of_the_middle_generation
        self._last_ns = 0

    def collect_idle(self, now_ns: int) -> None:
        """Make a full pass if one is worth it: there is nothing else to do."""
        self._collect_from(now_ns, WORTH)

    def collect_busy(self, now_ns: int) -> None:
        """Make one if the process has grown much."""
        self._collect_from(now_ns, GROWN)

    def _collect_from(self, now_ns: int, passes: int) -> None:
        if self.is_on and now_ns - self._last_ns >= EVERY_NS and self._count() >= passes:
            self._collect()
            self._last_ns = now_ns


def _passes_of_the_middle_generation() -> int:
    return gc.get_count()[2]
