"""The Clock door of a simulated world: time moves when an event happens, and at no other moment."""

BEGIN_MS = 1_700_000_000_000


class SimClock:
    """now_ns: of the monotonic clock, which begins at one second."""

    def __init__(self):
        self.now_ns = 1_000_000_000

    def to(self, now_ns):
        assert now_ns >= self.now_ns, "time does not go back"
        self.now_ns = now_ns

    def wall_ms(self):
        return BEGIN_MS + self.now_ns // 1_000_000

    def monotonic_ns(self):
        return self.now_ns

    @property
    def ms(self):
        """Milliseconds since the world began."""
        return self.now_ns / 1e6 - 1000
