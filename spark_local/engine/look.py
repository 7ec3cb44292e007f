"""Looking at a job without running it: what it would derive, and how Spark would do it."""

import contextlib
import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from spark_local.engine import derive, sinks
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATEFUL: Final = {
    "StateStoreSave": "aggregation: one row for each group{until}",
    "StreamingSymmetricHashJoin": "join of streams: rows that may still find a partner{until}",
    "StreamingDeduplicate": "deduplication: each key that was seen{until}",
    "SessionWindowStateStoreSave": "session windows: one row for each open session{until}",
    "StreamingGlobalLimit": "limit: how many rows there were",
    "TransformWithState": "your own state",
    "FlatMapGroupsWithState": "your own state",
}


@dataclass(slots=True)
class Preview:
    """Rows of what a job would derive."""

    columns: list[str]
    rows: list[dict[str, Any]]
    schemas: dict[str, str]
    kinds: dict[str, str] = field(default_factory=dict)


def preview(root: "SparkSession", job: Job, bootstrap: str, *, rows: int, last: int) -> Preview:
    """Derive from the last records of every partition, as a batch, and show `rows` of it."""
    spark = derive.session(root, job)
    found = derive.derive(spark, job, bootstrap, streaming=False, last=last)
    shown = [one.asDict(recursive=True) for one in found.rows.limit(rows).collect()]
    kinds = {f.name: f.dataType.simpleString() for f in found.rows.schema.fields}
    sink = sinks.make(job, bootstrap)
    sink.shaped(found.rows)
    return Preview(list(found.rows.columns), shown, found.schemas, kinds)


def explain(root: "SparkSession", job: Job, bootstrap: str) -> dict[str, Any]:
    """Plan, what state it keeps, and how a repeated batch looks to readers."""
    spark = derive.session(root, job)
    found = derive.derive(spark, job, bootstrap, streaming=not job.batch)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found.rows.explain(mode="simple")
    plan = said.getvalue().strip()
    return {
        "job": job.name,
        "schemas": found.schemas,
        "columns": {f.name: f.dataType.simpleString() for f in found.rows.schema.fields},
        "state": [] if job.batch else state(job, plan),
        "repeated": repeated(job),
        "plan": plan,
    }


def state(job: Job, plan: str) -> list[str]:
    """What the job remembers between batches, one line for each place that does."""
    marks = [one for one in job.sources if one.watermark_ms is not None]
    until = ", until the watermark passes it" if marks else ", for ever: no source has a watermark"
    if job.sink.mode == "complete":
        until = ", for ever: mode complete shows all of them"
    names = re.findall(r"^[\s:+\-*()\d]*(\w+)", plan, re.MULTILINE)
    return [_STATEFUL[name].format(until=until) for name in names if name in _STATEFUL]


def repeated(job: Job) -> str:
    """How a batch that is written again after a crash looks to readers."""
    if job.sink.place.file:
        return "a stream's files appear once" if not job.batch else "rows are there twice"
    if job.sink.place.topic and job.sink.key:
        keys = ", ".join(job.sink.key)
        return f"the same keys ({keys}) with the same values again: the latest of each key stays"
    return "its rows are there twice: the sink has no key"
