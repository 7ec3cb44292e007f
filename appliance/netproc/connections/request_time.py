"""How much time this process spends for each connection, to bill it by request_percentage.

Invariant: time runs for one connection at a time. It is billed with that connection's next answer,
so what sending an answer took goes on the bill of the one after it. Nothing is measured while
nobody has such a quota.
"""

from appliance.base.clock import Clock


class Account:
    """Time spent for one connection and not billed yet, in ns."""

    __slots__ = ("spent_ns",)

    def __init__(self) -> None:
        self.spent_ns = 0


class Stopwatch:
    """`running`: some client has a quota on its requests."""

    __slots__ = ("_clock", "_for", "_since_ns", "running")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._for: Account | None = None
        self._since_ns = 0
        self.running = False

    def begin_account(self, account: Account) -> None:
        """From now on time is billed to this account."""
        self.end_account()
        self._for = account
        self._since_ns = self._clock.monotonic_ns()

    def end_account(self) -> None:
        """Stop billing."""
        if self._for is not None:
            self._for.spent_ns += self._clock.monotonic_ns() - self._since_ns
            self._for = None

    def bill(self, account: Account) -> int:
        """Return the time spent for it since the last bill, in ns."""
        if self._for is account:
            self.end_account()
            self.begin_account(account)
        spent, account.spent_ns = account.spent_ns, 0
        return spent
