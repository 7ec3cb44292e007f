"""A probe that somebody waits for, made beside whoever answers others meanwhile."""

import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from appliance.exporter.probe import NotProbed

APART_NS: Final = 1_000_000_000
"""Between the beginnings of two probes: there is one at a time and one a second, however many
ask."""


class ProbeResult(NamedTuple):
    """problem: why it does not serve, "" when it does. skipped: why nothing was found out."""

    problem: str = ""
    skipped: str = ""


class HealthProbe:
    """probe: why a node does not serve, "" when it does; raises NotProbed. It may take seconds.

    Whoever asks hears of a probe that began after that: what was changed before is seen.
    """

    def __init__(
        self, probe: Callable[[], str], clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._running: threading.Thread | None = None
        self._began_ns: int | None = None
        self._found = ProbeResult()

    @property
    def under_way(self) -> bool:
        """Somebody has asked, and nothing is known yet."""
        return self._running is not None and self._running.is_alive()

    def result(self, asked_ns: int) -> ProbeResult | None:
        """Returns the finding of a probe that began since asked_ns (monotonic), None before it is
        known."""
        if self.under_way:
            return None
        now_ns = self._clock()
        if self._began_ns is not None:
            if self._began_ns >= asked_ns:
                return self._found
            if now_ns < self._began_ns + APART_NS:
                return None
        self._began_ns = now_ns
        self._found = ProbeResult(problem="the probe ended by an exception, see the log")
        self._running = threading.Thread(target=self._run, name="probe", daemon=True)
        self._running.start()
        return None

    def _run(self) -> None:
        self._found = looked(self._probe)


def looked(probe: Callable[[], str]) -> ProbeResult:
    """Returns the probe's finding, or why it could not run."""
    try:
        return ProbeResult(problem=probe())
    except NotProbed as why:
        return ProbeResult(skipped=str(why))
