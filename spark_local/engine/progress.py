"""Spark's account of one micro-batch → what a person wants to know of a job.

Pure: JSON in, values out; totals grow in a Totals of the job. Times in ms, sizes in bytes.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from spark_local.engine.sources import OBSERVED
from spark_local.job import Job, Source

OUTPUT: Final = "output"
"""Name of the observation of what is derived."""


@dataclass(slots=True)
class Totals:
    """Counts of a job since its last reset. Rows written again after a crash may count twice.
    lost_records: deleted before they were read; lost_unknown: how often their number is unknown."""

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    tombstones: int = 0
    lost_records: int = 0
    lost_unknown: int = 0

    @classmethod
    def of(cls, told: dict[str, Any] | None) -> "Totals":
        """As an account told them; zero without one."""
        kept = told or {}
        names = ("rows_in", "rows_out", "late_rows", "tombstones", "lost_records", "lost_unknown")
        return cls(*(int(kept.get(name) or 0) for name in names))

    def lost(self) -> dict[str, int]:
        """The part of an account that counts lost records."""
        return {"lost_records": self.lost_records, "lost_unknown": self.lost_unknown}


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets that a batch read of one topic. bad: how many of it could not be read."""

    source: Source
    begin: dict[str, int]
    end: dict[str, int]
    bad: int


def spans(job: Job, told: dict[str, Any]) -> list[Span]:
    """The offsets read of each topic of the batch."""
    found = []
    for one, place in _matched(job, told):
        topic = one.place.topic
        begin, end = (_offsets(place.get(key), topic) for key in ("startOffset", "endOffset"))
        observed = (told.get("observedMetrics") or {}).get(OBSERVED + one.name) or {}
        found.append(Span(one, begin, end, int(observed.get("bad") or 0)))
    return found


def _matched(job: Job, told: dict[str, Any]) -> list[tuple[Source, dict[str, Any]]]:
    found = []
    for one in job.sources:
        for place in told.get("sources") or []:
            if one.place.topic and f"[{one.place.topic}]" in str(place.get("description")):
                found.append((one, place))
                break
    return found


def _offsets(told: Any, topic: str | None) -> dict[str, int]:
    places = told.get(topic) if isinstance(told, dict) else None
    return {} if places is None else {str(p): int(at) for p, at in places.items()}


def account(job: Job, told: dict[str, Any], totals: Totals, now_ms: int) -> dict[str, Any]:
    """The batch for people, JSON-able."""
    observed = told.get("observedMetrics") or {}
    rows_in = int(told.get("numInputRows") or 0)
    rows_out = int((observed.get(OUTPUT) or {}).get("rows") or 0)
    operators = told.get("stateOperators") or []
    late = sum(int(one.get("numRowsDroppedByWatermark") or 0) for one in operators)
    mine = [observed.get(OBSERVED + one.name) or {} for one in job.sources]
    totals.rows_in += rows_in
    totals.rows_out += rows_out
    totals.late += late
    totals.tombstones += sum(int(one.get("tombstones") or 0) for one in mine)
    phases = {str(name): int(ms) for name, ms in (told.get("durationMs") or {}).items()}
    return {
        "batch": told.get("batchId"),
        "rows_in": totals.rows_in,
        "rows_out": totals.rows_out,
        "rows_per_s": _rate(told.get("inputRowsPerSecond")),
        "processed_per_s": _rate(told.get("processedRowsPerSecond")),
        "rows_out_per_s": _out_rate(told, rows_out),
        "batch_ms": phases.pop("triggerExecution", 0),
        "phases_ms": phases,
        "lag_records": lag(job, told),
        "lag_s": _lag_s(job, told, mine, now_ms),
        "watermark": (told.get("eventTime") or {}).get("watermark"),
        "state_rows": sum(int(one.get("numRowsTotal") or 0) for one in operators),
        "state_bytes": sum(int(one.get("memoryUsedBytes") or 0) for one in operators),
        "late_rows": totals.late,
        "tombstones": totals.tombstones,
        **totals.lost(),
    }


def lag(job: Job, told: dict[str, Any]) -> int | None:
    """Records that were there at the batch's end and that it left, None without a topic."""
    matched = _matched(job, told)
    if not matched:
        return None
    left = 0
    for one, place in matched:
        end = _offsets(place.get("endOffset"), one.place.topic)
        latest = _offsets(place.get("latestOffset"), one.place.topic)
        left += sum(max(0, latest.get(p, at) - at) for p, at in end.items())
    return left


def _lag_s(
    job: Job, told: dict[str, Any], observed: list[dict[str, Any]], now_ms: int
) -> float | None:
    """Age of the newest record that was read, while others wait; 0 when none does."""
    left = lag(job, told)
    if left is None:
        return None
    newest = [int(one["newest"]) for one in observed if one.get("newest")]
    if left == 0 or not newest:
        return 0.0
    return max(0.0, (now_ms - min(newest)) / 1000)


def _rate(told: Any) -> float | None:
    return round(float(told), 1) if isinstance(told, int | float) and told == told else None


def _out_rate(told: dict[str, Any], rows_out: int) -> float | None:
    """Derived rows per second, over the time that Spark's own rate of the batch is about: since the
    batch before it began. Of a batch that read nothing, over its own time."""
    rows_in, rate = int(told.get("numInputRows") or 0), _rate(told.get("inputRowsPerSecond"))
    if rows_in and rate:
        return round(rows_out * rate / rows_in, 1)
    batch_ms = int((told.get("durationMs") or {}).get("triggerExecution") or 0)
    return round(rows_out * 1000 / batch_ms, 1) if batch_ms else None


def milliseconds(text: str) -> int:
    """Spark's times (2013-01-01T00:00:00.000Z)."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)
