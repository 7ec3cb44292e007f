"""Looking at a job without running it: what it would derive, and how Spark would do it."""

import contextlib
import io
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.client_settings import ClientSettings
from spark_local.engine import derive, registered, sinks
from spark_local.engine.deadletters import DeadLetters
from spark_local.engine.derive import Derived
from spark_local.engine.tables import spans_of
from spark_local.job import EXACTLY_ONCE, Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATEFUL: Final = {
    "Aggregate": "aggregation: one row for each group{until}",
    "Distinct": "distinct rows: each that was seen{until}",
    "Deduplicate": "deduplication: each key that was seen{until}",
    "DeduplicateWithinWatermark": "deduplication: each key that was seen{until}",
    "GlobalLimit": "limit: how many rows there were",
    "TransformWithState": "your own state",
    "TransformWithStateInPandas": "your own state",
    "FlatMapGroupsWithState": "your own state",
    "FlatMapGroupsInPandasWithState": "your own state",
}
_REASONS: Final = 3
_JOIN: Final = "join of streams: rows that may still find a partner{until}"


@dataclass(slots=True)
class Preview:
    """Rows of what a job would derive."""

    columns: list[str]
    rows: list[dict[str, Any]]
    schemas: dict[str, str]
    kinds: dict[str, str] = field(default_factory=dict)
    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Topics that were not read whole → (records that were read, records that there are)."""
    unreadable: dict[str, tuple[int, int, list[str]]] = field(default_factory=dict)
    """Source → (records that cannot be read, records that were read, why the first cannot)."""

    def as_json(self) -> dict[str, Any]:
        """For another process: cells of other types than JSON's are text."""
        rows = [{name: _cell(cell) for name, cell in row.items()} for row in self.rows]
        return asdict(replace(self, rows=rows))

    @classmethod
    def of_json(cls, told: dict[str, Any]) -> "Preview":
        """As `as_json` told it."""
        parts = {name: tuple(pair) for name, pair in told["parts"].items()}
        unreadable = {name: tuple(one) for name, one in told["unreadable"].items()}
        return cls(**{**told, "parts": parts, "unreadable": unreadable})


def _cell(value: object) -> object:
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def preview(
    root: "SparkSession", job: Job, kafka: ClientSettings, *, rows: int, last: int
) -> Preview:
    """Derive from the last records of every partition, as a batch, and show `rows` of it. Raises
    what `check` raises."""
    check(root, job, kafka)
    spark = derive.session(root, job)
    job = registered.ask_registries(spark, job, None)
    job = registered.scan(spark, job, kafka, _last(job, kafka, last))
    found = derive.derive(spark, job, kafka, streaming=False, last=last)
    try:
        shown = [one.asDict(recursive=True) for one in found.rows.limit(rows).collect()]
        kinds = {f.name: f.dataType.simpleString() for f in found.rows.schema.fields}
        unreadable = _unreadable(spark, job, kafka, found)
    finally:
        for table in found.tables:
            table.close()
    parts = _parts(job, kafka, last)
    return Preview(list(found.rows.columns), shown, found.schemas, kinds, parts, unreadable)


def _last(job: Job, kafka: ClientSettings, last: int) -> registered.Spans:
    """The last records of each partition of the sources that a registry describes."""
    found: registered.Spans = {}
    for source in job.sources:
        if source.registry is not None and source.place.topic:
            spans = spans_of(kafka, source.place.topic)
            found[source.name] = ({p: max(0, end - last) for p, (_, end) in spans.items()}, None)
    return found


def _unreadable(
    spark: "SparkSession", job: Job, kafka: ClientSettings, found: Derived
) -> dict[str, tuple[int, int, list[str]]]:
    letters = DeadLetters(spark, job, found.schemas, kafka, Path(os.devnull, "none"))
    told = {}
    for source in job.sources:
        if (raw := found.raw.get(source.name)) is not None:
            count, reasons = letters.unreadable(source, raw, _REASONS)
            if count:
                told[source.name] = (count, raw.count(), reasons)
    return told


def _parts(job: Job, kafka: ClientSettings, last: int) -> dict[str, tuple[int, int]]:
    found = {}
    for topic in {one.place.topic for one in job.sources if one.place.topic}:
        spans = spans_of(kafka, topic).values()
        there = sum(end - begin for begin, end in spans)
        read = sum(min(end - begin, last) for begin, end in spans)
        if read < there:
            found[topic] = (read, there)
    return found


def check(root: "SparkSession", job: Job, kafka: ClientSettings) -> Derived:
    """Checks that Spark accepts the query as the stream that it will be: it refuses some that it
    accepts as a batch. Returns the derived rows. Raises JobError and Spark's own errors.
    """
    spark = derive.session(root, job)
    job = registered.ask_registries(spark, job, None)
    found = derive.derive(spark, job, kafka, streaming=not job.batch, read_tables=False)
    sink = sinks.make_sink(job, kafka)
    sink.shaped(found.rows)
    sink.check_rows(found.rows)
    if not job.batch:
        jvm: Any = spark._jvm
        mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, job.sink.mode.capitalize())()
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        checker.checkForStreaming(found.rows._jdf.queryExecution().analyzed(), mode)
    return found


def explain(root: "SparkSession", job: Job, kafka: ClientSettings) -> dict[str, Any]:
    """Plan, what state it keeps, and how a repeated batch looks to readers. Raises what `check`
    raises."""
    found = check(root, job, kafka)
    analyzed = found.rows._jdf.queryExecution().analyzed()
    plan = _physical(found.rows) if job.batch else str(analyzed.toString()).strip()
    return {
        "job": job.name,
        "schemas": found.schemas,
        "columns": {f.name: f.dataType.simpleString() for f in found.rows.schema.fields},
        "state": [] if job.batch else state(job, nodes(analyzed)),
        "repeated": repeated(job),
        "plan": plan,
    }


def _physical(rows: "DataFrame") -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        rows.explain(mode="simple")
    return said.getvalue().strip()


def nodes(plan: Any) -> list[str]:
    """Names of a plan's nodes that work on streams, a join of two of them as `Join`."""
    children = [plan.children().apply(i) for i in range(plan.children().size())]
    streams = [child for child in children if child.isStreaming()]
    name = str(plan.nodeName())
    found = [name] if streams and (name != "Join" or len(streams) == 2) else []
    return found + [one for child in streams for one in nodes(child)]


def state(job: Job, names: list[str]) -> list[str]:
    """The state that the job keeps between batches, one line for each operator that keeps some."""
    marks = [one for one in job.sources if one.watermark_ms is not None]
    until = (
        ", until the watermark passes it" if marks else ", without end: no source has a watermark"
    )
    if job.sink.mode == "complete":
        until = ", without end: mode complete shows all of them"
    told = [_STATEFUL.get(name) or (_JOIN if name == "Join" else None) for name in names]
    return [one.format(until=until) for one in told if one]


def repeated(job: Job) -> str:
    """How a batch that is written again after a crash looks to readers."""
    if job.sink.place.file:
        return "a stream's files appear once" if not job.batch else "rows are there twice"
    if job.sink.place.table:
        once = "the table's snapshot says that it has the batch: its rows are there once"
        return once if not job.batch else "rows are there twice"
    if job.sink.delivery == EXACTLY_ONCE:
        return "its rows are there once for who reads with isolation.level=read_committed"
    if job.sink.place.topic and job.sink.key:
        keys = ", ".join(job.sink.key)
        return f"the same keys ({keys}) with the same values again: the latest of each key stays"
    return "its rows are there twice: the sink has no key"
