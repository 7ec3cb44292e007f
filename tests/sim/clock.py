"""The Clock door of a simulated world: time moves when an event happens, and at no other moment.
Each machine may have a clock of its own, which is wrong in every way in which a clock may be."""

BEGIN_MS = 1_700_000_000_000
DRIFT = 0.05
"""By how much a clock is too fast or too slow at most: a hundred times as wrong as real ones."""
ASTRAY_MS = 3_600_000


class SimClock:
    """now_ns: of the monotonic clock, which begins at one second. rate: how fast it goes."""

    rate = 1.0

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


class OwnClock:
    """A machine's: it goes too fast or too slowly, its day is another one, and its monotonic clock
    began when it wanted, as such clocks do. rate: how fast it goes."""

    def __init__(self, true, rng):
        self._true = true
        self.rate = rng.uniform(1 - DRIFT, 1 + DRIFT)
        self._began_ns = rng.randint(1, 10**12)
        self._astray_ms = rng.randint(-ASTRAY_MS, ASTRAY_MS)

    def wall_ms(self):
        return BEGIN_MS + self._astray_ms + self._passed_ns() // 1_000_000

    def monotonic_ns(self):
        return self._began_ns + self._passed_ns()

    def _passed_ns(self):
        return int(self._true.now_ns * self.rate)
