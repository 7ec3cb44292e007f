"""The goals, each a bound on a ratio Penstock ÷ Kafka of one figure over one or more rows."""

import statistics
from dataclasses import dataclass

from benchmarks.compare.journal import Journal


@dataclass(frozen=True)
class Goal:
    """least: the ratio may not be lower; most: it may not be higher. The worst row decides."""

    text: str
    rows: tuple[str, ...]
    figure: str
    least: float = 0.0
    most: float = 0.0


def perf(size: int) -> tuple[str, ...]:
    return tuple(f"w2-goal-{size}-{acks}-{parts}" for acks in ("1", "all") for parts in (1, 6))


GOALS = (
    Goal("raw produce D1, 1 record, 5 in flight", ("raw-d1-1x100-5",), "requests_s", 1.5),
    Goal("raw produce D1, 16 KB, 5 in flight", ("raw-d1-16x1000-5",), "requests_s", 2),
    Goal("raw produce D1, 64 KB, 5 in flight", ("raw-d1-64x1000-5",), "requests_s", 3),
    Goal("raw produce D1, 1 MB, 5 in flight", ("raw-d1-1000x1000-5",), "requests_s", 3),
    Goal("raw produce D1, 1 record, 1 in flight", ("raw-d1-1x100-1",), "requests_s", 1.1),
    Goal("raw produce D2, 1 record, 1 in flight", ("raw-d2-1x100-1",), "requests_s", 1.1),
    Goal("raw produce D2, 1 record and 16 KB, 5 in flight",
         ("raw-d2-1x100-5", "raw-d2-16x1000-5"), "requests_s", 3),
    Goal("raw produce D2, 64 KB and 1 MB, 5 in flight",
         ("raw-d2-64x1000-5", "raw-d2-1000x1000-5"), "requests_s", 2),
    Goal("raw produce D2, 50 connections", ("raw-d2-1x100-1c50",), "requests_s", 5),
    Goal("raw produce D1, 50 connections", ("raw-d1-1x100-1c50",), "requests_s", 1.5),
    Goal("producer-perf 100 B", perf(100), "mb_s", 1.2),
    Goal("producer-perf 1 KB", perf(1000), "mb_s", 1.2),
    Goal("raw fetch 64 KB, hot", ("raw-fetch-64k",), "requests_s", 1.3),
    Goal("raw fetch 1 MB, hot", ("raw-fetch-1024k",), "requests_s", 1.0),
    Goal("consumer-perf, one and three consumers", ("w5-hot-1", "w5-hot-3"), "mb_s", 1.1),
    Goal("produce and consume together", ("w9-1k", "w9-100"), "mb_s", 1.3),
    *(
        Goal(f"end to end {title}, {rate:,}/s of 1 KB", (f"w7-{rate}-d1",), figure, most=most)
        for rate in (1000, 10_000)
        for title, figure, most in (
            ("p50", "p50_ms", 0.8), ("p99", "p99_ms", 0.5), ("p99.9", "p999_ms", 0.5))
    ),
    Goal("start to first ack", ("w15-0", "w15-1000", "w15-10000"), "first_ack_s", most=0.1),
    Goal("memory, idle", ("w16",), "pss_mb", most=0.2),
    Goal("memory under load, peak", ("raw-d1-64x1000-5", "w2-goal-1000-1-6", "w5-hot-1", "w9-1k"),
         "peak_pss_mb", most=0.2),
    Goal("recovery after kill -9", ("w14", "w14-small"), "all_ready_s", most=0.3),
    Goal("broker CPU per request, produce of 1 record", ("raw-d1-1x100-1", "raw-d1-1x100-5"),
         "cpu_us_request", most=0.5),
    Goal("broker CPU per GB, produce", ("raw-d1-64x1000-5", "w2-goal-1000-1-6"), "broker_cpu_s_gb",
         most=0.5),
    Goal("broker CPU per request, fetch of 64 KB", ("raw-fetch-64k",), "cpu_us_request", most=0.5),
    Goal("broker CPU per GB, fetch", ("raw-fetch-1024k", "w5-hot-1"), "broker_cpu_s_gb", most=0.5),
)  # fmt: skip


def ratio(journal: Journal, row: str, figure: str) -> float | None:
    """Median on Penstock over median on Kafka; None where one of them has no figures."""
    ours, theirs = (journal.figures(row, name, figure) for name in ("penstock", "kafka"))
    if not ours or not theirs or not statistics.median(theirs):
        return None
    return statistics.median(ours) / statistics.median(theirs)


def lines(journal: Journal) -> list[list[str]]:
    """Goal, ratios of its rows, bound, verdict."""
    found = []
    for goal in GOALS:
        ratios = [
            value for row in goal.rows if (value := ratio(journal, row, goal.figure)) is not None
        ]
        bound = f"≥ {goal.least:g}" if goal.least else f"≤ {goal.most:g}"
        if not ratios:
            found.append([goal.text, "–", bound, "not measured"])
            continue
        met = min(ratios) >= goal.least if goal.least else max(ratios) <= goal.most
        shown = ", ".join(f"{value:.2f}" for value in ratios)
        found.append([goal.text, shown, bound, "met" if met else "**missed**"])
    return found
