"""The past of an appliance for a screen: rates of the last ten minutes and the last day, latencies
by API, and when its disks are full. Read repeatedly from its history.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from appliance.history.samples import ApiSample, Whole
from appliance.observer.names import api_name
from console.model.local.history import MINUTES, SECONDS, Past, Series, read
from console.model.storage.forecast import Forecast, forecast

_MINUTES_AGAIN_S: Final = 15.0


@dataclass(slots=True, frozen=True)
class Remembered:
    """seconds, minutes: of all together. p99_seconds, p99_minutes: API → its p99 in ms. forecasts:
    of each log folder, by its number in the settings. at_s: wall clock, when it was read."""

    at_s: float
    seconds: Past[Whole]
    minutes: Past[Whole]
    p99_seconds: Mapping[str, Series] = field(default_factory=dict)
    p99_minutes: Mapping[str, Series] = field(default_factory=dict)
    forecasts: Mapping[int, Forecast] = field(default_factory=dict)

    def rates(self, name: str, span_s: float) -> Series:
        """A field of the whole per second, of the last `span_s` seconds: by the second where that
        is known, by the minute before."""
        return _joined(self.minutes.rates(name), self.seconds.rates(name), self.at_s - span_s)

    def p99(self, api: str, span_s: float) -> Series:
        """The p99 of an API in ms, likewise."""
        nothing = Series()
        minutes, seconds = self.p99_minutes.get(api, nothing), self.p99_seconds.get(api, nothing)
        return _joined(minutes, seconds, self.at_s - span_s)


class Memory:
    """Reads the history of one appliance; what only changes each minute is read seldom."""

    def __init__(self) -> None:
        self._read_s = 0.0
        self._minutes: Past[Whole] = Past((), (), ())
        self._p99s: dict[str, Series] = {}
        self._forecasts: dict[int, Forecast] = {}

    def read_memory(self, data_dir: str) -> Remembered:
        """Raises Failure: it has none."""
        past = read(data_dir)
        try:
            now = time.monotonic()
            if now - self._read_s >= _MINUTES_AGAIN_S:
                self._minutes = past.whole(MINUTES)
                self._p99s = _p99s(past.apis(MINUTES))
                self._forecasts = {n: forecast(one) for n, one in past.disks(MINUTES).items()}
                self._read_s = now
            return Remembered(
                time.time(),
                past.whole(SECONDS),
                self._minutes,
                _p99s(past.apis(SECONDS)),
                self._p99s,
                self._forecasts,
            )
        finally:
            past.close()


def _p99s(apis: Mapping[int, Past[ApiSample]]) -> dict[str, Series]:
    found = {}
    for key, past in apis.items():
        told = past.levels("p99_us")
        found[api_name(key)] = Series(told.times, tuple(us / 1000 for us in told.values))
    return found


def _joined(minutes: Series, seconds: Series, since: float) -> Series:
    first = seconds.times[0] if seconds.times else float("inf")
    before = [pair for pair in zip(minutes.times, minutes.values, strict=True) if pair[0] < first]
    pairs = [*before, *zip(seconds.times, seconds.values, strict=True)]
    kept = [pair for pair in pairs if pair[0] >= since]
    return Series(tuple(at for at, _ in kept), tuple(value for _, value in kept))
