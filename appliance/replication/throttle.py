"""How fast replicas that are not in sync are brought up to date (KIP-73): one side of one process.

A bucket fills at the limit's rate up to `BURST_S` seconds' worth; while there is anything in it a
whole answer may pass, and leaves it in debt until that is paid back. Apache Kafka measures eleven
seconds, lets ten seconds' worth pass at once and then nothing for as long. No clock: times come in,
in ms.
"""

from collections.abc import Collection
from typing import Final

Key = tuple[bytes, int]
"""Topic id, partition."""

BURST_S: Final = 0.2
NEVER_MS: Final = 1 << 40


class ReplicationThrottle:
    """keys: partitions to which the limit applies. on: whether there are any."""

    __slots__ = ("_filled_ms", "_rate", "_tokens", "keys", "on")

    def __init__(self) -> None:
        self.keys: frozenset[Key] = frozenset()
        self.on = False
        self._rate = 0.0
        self._tokens = 0.0
        self._filled_ms = -1  # nothing has passed yet

    def set(self, rate: float, keys: Collection[Key]) -> None:
        """Another limit, in bytes per second, or for others; what was spent is owed still."""
        assert rate >= 0 or not keys
        self._rate, self.keys = rate, frozenset(keys)
        self.on = bool(self.keys)
        if not self.on:
            self._filled_ms = -1

    def wait_ms(self, now_ms: int) -> int:
        """How long until something may pass, 0: now. At a rate of 0 nothing ever does."""
        if not self._rate:
            return NEVER_MS
        self._fill(now_ms)
        return 0 if self._tokens > 0 else 1 + int(-self._tokens * 1000 / self._rate)

    def spend(self, amount: int, now_ms: int) -> None:
        """So many bytes pass."""
        self._fill(now_ms)
        self._tokens -= amount

    def _fill(self, now_ms: int) -> None:
        most = self._rate * BURST_S
        if self._filled_ms < 0:
            self._tokens = most
        else:
            since_ms = max(0, now_ms - self._filled_ms)
            self._tokens = min(most, self._tokens + self._rate * since_ms / 1000)
        self._filled_ms = now_ms
