"""Stages of requests as counters and quantiles of the last minute: a value machine over snapshots.

A request passes queue, local, remote and send in this order (`ring/counters.py`); the sum of the
first three is its total. Sums of seconds are made of the buckets' middles, within 12.5 %.
"""

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Final

from appliance.exporter.exposition import Page
from appliance.observer.names import api_name
from appliance.observer.snapshot import FETCH, Snapshot, Stages
from appliance.ring import counters, histogram

QUANTILES: Final = (("0.50", 0.5), ("0.99", 0.99), ("0.999", 0.999))
STAGE_NAMES: Final = {
    counters.TOTAL: ("total", "totaltimems"),
    counters.QUEUE: ("queue", "requestqueuetimems"),
    counters.LOCAL: ("local", "localtimems"),
    counters.REMOTE: ("remote", "remotetimems"),
    counters.SEND: ("send", "responsesendtimems"),
}
"""Stage → our name and the end of Kafka's."""
_APART: Final = {FETCH: "FetchConsumer", counters.FOLLOWER_FETCH: "FetchFollower"}
_KAFKA: Final = "kafka_network_requestmetrics"
_SECONDS: Final = "penstock_request_stage_seconds_total"
_QUANTILE: Final = "penstock_request_stage_quantile_seconds"
_MIDDLES_US: Final = [
    sum(histogram.bounds(n, histogram.COARSE)) / 2 for n in range(histogram.COARSE_BUCKETS)
]
_MIDDLES_US[0] = 0.0  # most of what stands there took no time


def write_stages(page: Page, now: Snapshot, before: Snapshot | None) -> None:
    """Write the stages of everything that was asked. before: a minute ago, None: not known."""
    for row, stages in sorted(now.stages.items()):
        requests = sum(stages[counters.TOTAL])
        if not requests:
            continue
        name = _APART.get(row) or api_name(row)
        if row in _APART:
            page.add(f"{_KAFKA}_requests_total", requests, name)
        for stage, counts in enumerate(stages):
            seconds = sum(map(mul, counts, _MIDDLES_US)) / 1e6
            page.add(_SECONDS, round(seconds, 6), name, STAGE_NAMES[stage][0])
        if before is not None:
            _tell_quantiles(page, row, name, _difference(stages, before.stages.get(row)))


def _difference(now: Stages, before: Stages | None) -> Iterator[list[int]]:
    """Each stage's requests since then, also those that took no time in SEND."""
    requests = 0
    for stage, counts in enumerate(now):
        then: Sequence[int] = (0,) * len(counts) if before is None else before[stage]
        since = [here - there for here, there in zip(counts, then, strict=True)]
        if stage == counters.TOTAL:
            requests = sum(since)
        elif stage == counters.SEND:
            since[0] += max(0, requests - sum(since))
        yield since


def _tell_quantiles(page: Page, row: int, name: str, stages: Iterator[list[int]]) -> None:
    for stage, counts in enumerate(stages):
        if not any(counts):
            return  # nothing was asked
        ours, kafkas = STAGE_NAMES[stage]
        for text, share in QUANTILES:
            found = histogram.percentile_us(counts, share, histogram.COARSE)
            seconds = found / 1e6 if found > 0.5 else 0.0
            page.add(_QUANTILE, seconds, name, ours, text)
            if stage != counters.TOTAL or row in _APART:
                page.add(f"{_KAFKA}_{kafkas}", seconds, name, text)
