"""The wall clock as those believe it who delete what is old.

A clock that jumps ahead, by a wrong answer of a time server or a dead battery, would make all that
is kept old at once, and what is deleted does not come back when the clock does. So a jump ahead is
believed when it has lasted; until then time goes on from where it was. A jump back deletes nothing
and is believed at once.
"""

from typing import Final

SLACK_MS: Final = 60_000
"""What a clock may gain between two looks without being called a jump: a machine that stood still,
a clock that is set right."""
DOUBTED_NS: Final = 3_600_000_000_000


class RetentionClock:
    """jumped_ms: how far ahead the clock is of what is believed, 0 mostly. Invariant: what is
    believed is never ahead of the clock."""

    __slots__ = ("_doubted_ns", "_doubts", "_seen_ms", "_seen_ns", "jumped_ms")

    def __init__(self, *, doubts: bool = True) -> None:
        """doubts: False for the clock of a test, whose jumps are meant."""
        self.jumped_ms = 0
        self._doubts = doubts
        self._doubted_ns = -1  # since when
        self._seen_ns = self._seen_ms = -1

    def at(self, now_ns: int, wall_ms: int) -> int:
        """Returns the retention clock, in ms since 1970. now_ns: of the monotonic clock."""
        due_ms = self._seen_ms + (now_ns - self._seen_ns) // 1_000_000
        if self._doubts and self._seen_ms >= 0 and wall_ms > due_ms + SLACK_MS:
            if self._doubted_ns < 0:
                self._doubted_ns = now_ns
            if now_ns < self._doubted_ns + DOUBTED_NS:
                self.jumped_ms = wall_ms - due_ms
                return due_ms
        self._doubted_ns, self.jumped_ms = -1, 0
        self._seen_ns, self._seen_ms = now_ns, wall_ms
        return wall_ms
