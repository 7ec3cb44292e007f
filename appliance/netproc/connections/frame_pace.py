"""How far a frame is behind the least rate at which it has to arrive.

A sender that stops for a while and goes on is not behind: its rate is that of all the time since
the frame began. Called by the sweep, once a second.
"""

from typing import Final

_NS: Final = 1_000_000_000


class FramePace:
    """The rate of one unfinished frame, `have` bytes of which were there at `at_ns`."""

    __slots__ = ("_at_ns", "_behind_ns", "_have")

    def __init__(self, at_ns: int, have: int) -> None:
        self._at_ns = at_ns
        self._have = have
        self._behind_ns = 0

    def measure_behind_ns(self, now_ns: int, have: int, rate: int) -> int:
        """How much longer it has taken than `rate` bytes/s allow; a new frame starts anew."""
        grown, taken = have - self._have, now_ns - self._at_ns
        self._have, self._at_ns = have, now_ns
        if grown < 0:
            self._behind_ns = 0
        else:
            self._behind_ns = max(0, self._behind_ns + taken - grown * _NS // rate)
        return self._behind_ns
