"""Rates over windows, as Kafka measures them: `count` samples of `size_ms` each.

Samples begin at multiples of size_ms of the host's monotonic clock, so every process has the same
ones and their sums may be added. The span a total is divided by is all full windows and what has
passed of the present one, even when there was no traffic before: a client that begins may use what
the windows hold at once.
"""

from appliance.base.dataclass import dataclass


@dataclass(slots=True, frozen=True)
class Windows:
    """quota.window.num and quota.window.size.seconds (here in ms)."""

    count: int = 11
    size_ms: int = 1000

    def __post_init__(self) -> None:
        assert self.count >= 1 and self.size_ms >= 1

    def slot(self, now_ms: int) -> int:
        """Number of the present sample."""
        return now_ms // self.size_ms

    def span_ms(self, now_ms: int) -> int:
        """Returns the time that a total is divided by, in ms; at least one window."""
        return max((self.count - 1) * self.size_ms + now_ms % self.size_ms, self.size_ms)

    def rate(self, total: float, now_ms: int) -> float:
        """Units per second."""
        return total * 1000.0 / self.span_ms(now_ms)

    def throttle_ms(self, total: float, bound: float, now_ms: int, most_ms: int) -> int:
        """How long until `total` spread over span and pause is `bound` per second, at most
        `most_ms`; 0 when it is within the limit already."""
        assert bound > 0
        over = total * 1000.0 / bound - self.span_ms(now_ms)
        return min(round(over), most_ms) if over > 0 else 0

    def left_ms(self, now_ms: int) -> int:
        """How long until the next window begins."""
        return self.size_ms - now_ms % self.size_ms

    @property
    def all_ms(self) -> int:
        """All windows together: after so long without traffic they are empty."""
        return self.count * self.size_ms
