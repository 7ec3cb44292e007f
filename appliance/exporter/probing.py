"""A probe that somebody waits for, made beside whoever answers others meanwhile."""

import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from appliance.exporter.probe import NotProbed

FRESH_S: Final = 1.0
"""Whoever asks within so long of a probe hears of the same one: there is no more than one at a time
and about one a second, however many ask."""


class Probed(NamedTuple):
    """problem: why it does not serve, "" when it does. skipped: why nothing was found out."""

    problem: str = ""
    skipped: str = ""


class Probing:
    """probe: why a node does not serve, "" when it does; raises NotProbed. It may take seconds."""

    def __init__(
        self, probe: Callable[[], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._running: threading.Thread | None = None
        self._last: tuple[float, Probed] | None = None

    @property
    def under_way(self) -> bool:
        """Somebody has asked, and nothing is known yet."""
        return self._running is not None and self._running.is_alive()

    def result(self) -> Probed | None:
        """What a probe of this moment found; None: it is under way, ask again."""
        if self.under_way:
            return None
        if self._last is not None and self._clock() - self._last[0] < FRESH_S:
            return self._last[1]
        self._running = threading.Thread(target=self._run, name="probe", daemon=True)
        self._running.start()
        return None

    def _run(self) -> None:
        found = looked(self._probe)
        self._last = self._clock(), found


def looked(probe: Callable[[], str]) -> Probed:
    """What it found, or why it could not look."""
    try:
        return Probed(problem=probe())
    except NotProbed as why:
        return Probed(skipped=str(why))
