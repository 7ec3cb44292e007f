"""How much time this process spends for each connection, to bill it by request_percentage.

Invariant: time runs for one connection at a time. It is billed with that connection's next answer,
so what sending an answer took goes on the bill of the one after it. Nothing is measured while
nobody has such a quota.
"""

from appliance.base.clock import Clock
from appliance.netproc.connection import Connection


class Stopwatch:
    """`running`: some client has a quota on its requests."""

    __slots__ = ("_clock", "_for", "_since_ns", "running")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._for: Connection | None = None
        self._since_ns = 0
        self.running = False

    def begin(self, connection: Connection) -> None:
        """From now on time is spent for this connection."""
        self.end()
        self._for = connection
        self._since_ns = self._clock.monotonic_ns()

    def end(self) -> None:
        """No longer."""
        if self._for is not None:
            self._for.spent_ns += self._clock.monotonic_ns() - self._since_ns
            self._for = None

    def bill(self, connection: Connection) -> int:
        """What was spent for it since the last bill, in ns."""
        if self._for is connection:
            self.end()
            self.begin(connection)
        spent, connection.spent_ns = connection.spent_ns, 0
        return spent
