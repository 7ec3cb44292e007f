"""Request metrics as counters, a histogram and quantiles of the last minute: a value machine over
snapshots (`observer/snapshot.py`).

A histogram's bounds are powers of two of a µs, because the buckets of the counters begin there:
nothing is guessed. Lines of an API that nobody asked since the last scrape are kept as they were.
"""

from collections import deque
from itertools import accumulate
from operator import mul
from typing import Final

from appliance.exporter.exposition import Buckets, Page
from appliance.exporter.stages import QUANTILES, write_stages
from appliance.observer.names import api_name, error_name
from appliance.observer.snapshot import ApiCounters, Snapshot
from appliance.ring import histogram

_S_NS: Final = 1_000_000_000
WINDOW_NS: Final = 60 * _S_NS
STEP_NS: Final = 10 * _S_NS
_PRODUCE: Final = 0
_FETCH: Final = 1

_FIRST_BOUND: Final = 64
_BOUNDS_US: Final = tuple(_FIRST_BOUND << n for n in range(20))
"""64 µs to 33 s."""
_CUTS: Final = tuple(histogram.bucket_of(bound) for bound in _BOUNDS_US)
_MIDDLES_US: Final = [sum(histogram.bounds(n)) / 2 for n in range(histogram.BUCKETS)]

assert all(histogram.bounds(cut)[0] == us for cut, us in zip(_CUTS, _BOUNDS_US, strict=True)), (
    "a bound is where a bucket begins"
)


class RequestRates:
    """Looks now and then (`remember`), so that the last minute is known."""

    def __init__(self) -> None:
        self._past: deque[Snapshot] = deque()
        self._buckets: dict[int, Buckets] = {}
        self._known: dict[int, tuple[ApiCounters, str]] = {}

    def remember(self, now: Snapshot) -> None:
        """Every ten seconds. The oldest one that is kept is a minute old, or was the first."""
        past = self._past
        past.append(now)
        while len(past) > 1 and now.at_ns - past[1].at_ns >= WINDOW_NS:
            past.popleft()

    def write_page(self, page: Page, now: Snapshot) -> None:
        """Everything that was asked."""
        for key, api in sorted(now.apis.items()):
            name = api_name(key)
            page.add("penstock_requests_total", api.requests, name)
            page.add("penstock_request_received_bytes_total", api.bytes_in, name)
            page.add("penstock_request_sent_bytes_total", api.bytes_out, name)
            for code, count in sorted(api.errors.items()):
                page.add("penstock_request_errors_total", count, name, error_name(code))
            page.add_lines("penstock_request_duration_seconds", self._histogram(key, name, api))
        for name, key in (("produce", _PRODUCE), ("fetch", _FETCH)):
            errors = now.apis[key].errors if key in now.apis else {}
            page.add(f"penstock_{name}_errors_total", sum(errors.values()))
        write_stages(page, now, self._past[0] if self._past else None)
        if self._past:
            for key, api in sorted(now.since(self._past[0]).items()):
                self._tell_quantiles(page, api_name(key), api)

    def _tell_quantiles(self, page: Page, name: str, api: ApiCounters) -> None:
        if api.requests:
            for text, share in QUANTILES:
                seconds = api.percentile_us(share) / 1e6
                page.add("penstock_request_duration_quantile_seconds", seconds, name, text)

    def _histogram(self, key: int, name: str, api: ApiCounters) -> str:
        known = self._known.get(key)
        if known is None or known[0].latencies != api.latencies:
            buckets = self._buckets.get(key)
            if buckets is None:
                bounds = [us / 1e6 for us in _BOUNDS_US]
                buckets = Buckets("penstock_request_duration_seconds", (name,), bounds)
                self._buckets[key] = buckets
            so_far = [0, *accumulate(api.latencies)]
            seconds = sum(map(mul, api.latencies, _MIDDLES_US)) / 1e6
            counts = [*(so_far[cut] for cut in _CUTS), so_far[-1]]
            known = self._known[key] = api, buckets.lines(counts, seconds)
        return known[1]
