"""Time that goes on evenly while the wall clock jumps: for deadlines that stand beside the times of
records.

It is the wall clock as it was at the first look, going on at the rate of the monotonic one. So what
is due in ten seconds is so, wherever somebody sets the clock meanwhile.
"""


class LevelTime:
    """ahead_ms: how far the wall clock has jumped since the first look, 0 before any."""

    __slots__ = ("_zero_ms", "ahead_ms")

    def __init__(self) -> None:
        self.ahead_ms = 0
        self._zero_ms: int | None = None

    def read_clocks(self, now_ns: int, wall_ms: int) -> None:
        """Both clocks, read at the same moment. now_ns: of the monotonic one."""
        zero_ms = wall_ms - now_ns // 1_000_000
        if self._zero_ms is None:
            self._zero_ms = zero_ms
        self.ahead_ms = zero_ms - self._zero_ms

    def of(self, wall_ms: int) -> int:
        """Returns the wall clock without its jumps, in ms."""
        return wall_ms - self.ahead_ms
