"""A bucket of tokens, as Kafka measures changes of the metadata (KIP-599): it fills at the limit's
rate up to what the windows hold, a change takes as many as it touches partitions.

Invariant: what is accepted may leave the bucket in debt; while it is, nothing more is accepted.
"""

from appliance.base.dataclass import dataclass


@dataclass(slots=True, frozen=True)
class Bucket:
    """controller.quota.window.num times controller.quota.window.size.seconds, in s."""

    seconds: float = 11.0

    def filled(self, tokens: float, since_ms: int, limit: float, now_ms: int) -> float:
        """The tokens there are now; since_ms 0: nobody has taken any yet, it is full."""
        most = limit * self.seconds
        if not since_ms:
            return most
        return min(most, tokens + limit * max(0, now_ms - since_ms) / 1000)

    def wait_ms(self, tokens: float, limit: float) -> int:
        """How long until a debt is paid back."""
        return round(-tokens / limit * 1000) if tokens < 0 else 0
