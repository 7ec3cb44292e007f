"""Answers that wait: each was decided over metadata up to some offset, and may be said when all of
that is committed.

Invariant: offsets only rise from one to the next, so answers leave in the order of their requests;
each leaves once, as it was decided or refused. Called by `shell.py`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from appliance.base.errors import UNKNOWN_SERVER_ERROR
from appliance.shell.bugs import Bugs

LOST: Final = 0
"""This node is no leader any more."""
FULL: Final = 1
"""There was no room on the disk for its records."""
UNDONE: Final = 2
"""Nor for those of a request before, over which it was decided."""


class Unencoded(NamedTuple):
    """A long answer, which is encoded when it may be said. values: plain, of this API."""

    key: int
    version: int
    values: Mapping[str, Any]


Body = bytes | Unencoded
Answer = tuple[int, bytes]
"""(error code, body)."""


class Decision(NamedTuple):
    """An answer to give once its records are committed. refuse: the answer if they are lost, for
    the reason LOST, FULL or UNDONE. at_once: it does not wait.
    """

    code: int
    body: Body
    refuse: Callable[[int], tuple[int, Body]]
    at_once: bool = False


class WaitingAnswer(NamedTuple):
    """seen: exclusive end of the metadata that it was decided over."""

    netproc: int
    token: int
    decision: Decision
    seen: int


class WaitingAnswers:
    """The answers that wait, in the order of their requests. bugs: tells what refusing raises."""

    __slots__ = ("_bugs", "_waiting")

    def __init__(self, bugs: Bugs | None = None) -> None:
        self._bugs = bugs
        self._waiting: deque[WaitingAnswer] = deque()

    def add_answer(self, netproc: int, token: int, decision: Decision, seen: int) -> None:
        """Keep an answer until everything below `seen` is committed."""
        assert not self._waiting or self._waiting[-1].seen <= seen
        self._waiting.append(WaitingAnswer(netproc, token, decision, seen))

    def release(self, committed: int) -> Iterator[tuple[int, int, int, Body]]:
        """(netproc, token, code, body) of each that may be said now."""
        waiting = self._waiting
        while waiting and waiting[0].seen <= committed:
            one = waiting.popleft()
            yield one.netproc, one.token, one.decision.code, one.decision.body

    def refuse(self, since: int, why: int) -> Iterator[tuple[int, int, int, Body]]:
        """Refuses the decisions from `since` on, which are lost, and the answers that were based on
        them.
        """
        waiting = self._waiting
        gone: deque[WaitingAnswer] = deque()
        while waiting and waiting[-1].seen > since:
            gone.appendleft(waiting.pop())
        for one in gone:
            yield one.netproc, one.token, *self._refusal(one.decision, why)

    def _refusal(self, decision: Decision, why: int) -> tuple[int, Body]:
        try:
            return decision.refuse(why)
        except Exception as bug:
            if self._bugs is None:
                raise
            self._bugs.report("a refusal", bug)
            return UNKNOWN_SERVER_ERROR, b""

    def forget_netproc(self, netproc: int) -> None:
        """This process is dead: nobody hears what it asked for."""
        self._waiting = deque(one for one in self._waiting if one.netproc != netproc)
