"""Asking the homes of many partitions a part at a time, over several turns.

A home answers what lies in its ring in order: thousands of questions of one request would keep
everybody behind them waiting. So the next part is asked when the one before is answered, or after
PACE_NS where that takes long, as an answer may that waits for replicas. Few such requests are under
way at a time, the others in line, and requests behind one on its connection wait until all of it is
asked.
"""

from collections.abc import Callable
from typing import Final

from appliance.handlers.exchange import WORK, Exchange, Host, Steps

PACE: Final = WORK - 1
"""The index by which an exchange waits to ask for more."""
PACE_NS: Final = 100_000_000


class PacedAsking:
    """One request's. parts: asks some hundred partitions in each step. then: is called when all
    are asked, answered or not."""

    __slots__ = ("_host", "_parts", "_then", "_x", "is_asking")

    def __init__(self, host: Host, x: Exchange, parts: Steps, then: Callable[[], None]) -> None:
        self._host = host
        self._x = x
        self._parts = parts
        self._then = then
        self.is_asking = True

    def begin_in_line(self, plan: Steps) -> None:
        """Do `plan`, and then ask, when few others are under way."""
        self._host.work_in_line(self._x, plan, self._begin_asking)

    def _begin_asking(self) -> None:
        self._host.pause(self._x)
        self._ask_part()

    def _ask_part(self) -> None:
        self._host.work(self._x, self._one_part(), self._end_part)

    def _one_part(self) -> Steps:
        for _ in self._parts:
            return
        self.is_asking = False
        yield from ()

    def _end_part(self) -> None:
        if not self.is_asking:
            self._end()
        elif self._x.pending:
            self._host.later(self._x, PACE, PACE_NS)
        else:
            self._ask_part()

    def _end(self) -> None:
        self.is_asking = False
        self._host.unpause(self._x)
        self._host.leave_line(self._x)
        self._then()

    def take_completion(self, index: int) -> bool:
        """Something has come. True while there is more to ask, or when there is nothing else to be
        done about it."""
        if not self.is_asking:
            return False
        pending = self._x.pending
        if index == PACE or (len(pending) == 1 and pending.pop(PACE, None) is not None):
            self._ask_part()
        return True

    def give_up(self) -> None:
        """Ask for no more. `parts` ends by itself where it is under way."""
        if self._x.pending.pop(PACE, None) is not None:
            self._end()
