"""How fast a job is on this machine, and which stage of a micro-batch takes how long.

Spark tells one time for reading, deriving and writing a batch together. So the same records are
read again and again: into nothing, through the query into nothing, and through the query to a sink
of the bench's own; a stage is what the later run takes longer than the one before. The query runs
into nothing once more after that: what runs first is slower, because Java translates it meanwhile,
and writing would seem to take no time.
"""

import json
import queue
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import registered, sinks
from spark_local.engine.derive import derive, session
from spark_local.engine.exactly_once import ExactlyOnceSink
from spark_local.engine.listener import ENDED, IDLE, forward
from spark_local.engine.progress import OUTPUT
from spark_local.engine.table_formats import table_sink
from spark_local.engine.table_sink import TableSink
from spark_local.engine.tables import spans_of
from spark_local.folder import JobFolder
from spark_local.job import Job, Place, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

_BATCHES: Final = 10
_LEAST: Final = 100
"""Records of a source. There are several batches then, and the first one, in which Spark translates
the query to code, counts for itself."""
_WORK: Final = "addBatch"
_WHOLE: Final = "triggerExecution"

Told = list[dict[str, Any]]
"""Spark's accounts of the micro-batches that read records."""


@dataclass(slots=True, frozen=True)
class Stage:
    """ms: of all measured batches together."""

    name: str
    ms: float


@dataclass(slots=True, frozen=True)
class BenchResult:
    """records, rows: read and derived in the measured batches, whose number is `batches`; first_ms:
    of the batch before them."""

    records: int
    rows: int
    batches: int
    first_ms: float
    stages: tuple[Stage, ...]

    @property
    def ms(self) -> float:
        """The time of all stages together, at least 1."""
        return max(1, sum(one.ms for one in self.stages))

    @property
    def slowest(self) -> Stage:
        """The stage that takes longest."""
        return max(self.stages, key=lambda one: one.ms)


def scratch_job(job: Job, name: str, folder: Path) -> Job:
    """The job under another name, with a topic, folder or table of the bench's own as its sink.
    Raises JobError for one that cannot be measured so."""
    if job.batch:
        raise JobError("it is a batch job", "measure it with time penstock job run FILE --once")
    if not job.sources or not all(one.place.topic for one in job.sources):
        raise JobError(
            "not all of its sources are topics", "only topics can be read again and again"
        )
    if job.sink.place.topic:
        place = Place(topic=name)
    elif job.sink.place.file:
        place = Place(file=replace(job.sink.place.file, path=str(folder / "rows")))
    elif (table := job.sink.place.table) is not None and table.store is None:
        place = Place(table=replace(table, path=str(folder / "lake")))
    else:
        kind = "a table in a bucket" if table else "a database"
        raise JobError(f"its sink is {kind}", "bench a copy of the job file with [sink] topic")
    sink = replace(job.sink, place=place, registry=None)  # its schema is nobody's
    return replace(job, name=name, sink=sink, trigger_ms=None)


def measure_job(
    root: "SparkSession",
    job: Job,
    kafka: ClientSettings,
    folder: Path,
    *,
    records: int,
    tell: Callable[[str], None] = lambda _: None,
) -> BenchResult:
    """Read so many records of each source, or what is there, in micro-batches as large as the
    job's, or smaller for ten of them. job: as scratch_job makes it. folder: for checkpoints,
    the caller deletes it. tell: is called with what begins. Raises JobError and Spark's errors."""
    job = replace(job, sources=tuple(_sized(one, kafka, records) for one in job.sources))
    job = registered.ask_registries(session(root, job), job, None)
    read = []
    for number, source in enumerate(job.sources):
        tell(f"reading {source.name}")
        alone = replace(job, sources=(source,), tables=(), python=None, sql=_every(source))
        alone = replace(alone, sink=replace(job.sink, mode="append"))
        read.append(_run(root, alone, kafka, folder / f"read-{number}", records))
    tell("deriving")
    derived = _run(root, job, kafka, folder / "derive", records)
    tell("writing")
    place = JobFolder(folder / "write")
    spark = session(root, job)
    sink = _sink(root, spark, job, kafka, place)
    sink.prepare()
    try:
        written = _run(root, job, kafka, place.path, records, sink, spark)
    finally:
        sink.close()
    tell("deriving once more")
    again = _run(root, job, kafka, folder / "derive-again", records)
    return result_of(read, min(derived, again, key=_work_ms), written)


def _sized(source: Source, kafka: ClientSettings, records: int) -> Source:
    assert source.place.topic is not None
    spans = spans_of(kafka, source.place.topic).values()
    there = min(records, sum(end - begin for begin, end in spans))
    if there < _LEAST:
        problem = f"{there} records of topic {source.place.topic} are too few to measure"
        raise JobError(problem, f"it takes {_LEAST}, and says more with 100,000")
    batch = min(source.max_records, max(1, there // _BATCHES))
    return replace(source, start="earliest", max_records=batch)


def _every(source: Source) -> str:
    return f"SELECT * FROM `{source.name}`"


def _sink(
    root: "SparkSession", spark: "SparkSession", job: Job, kafka: ClientSettings, place: JobFolder
) -> sinks.Sink:
    place.path.mkdir(parents=True)
    if job.sink.place.table:
        return table_sink(job, kafka, spark, place, lambda _: None)
    if job.sink.is_transactional:
        return ExactlyOnceSink(job, kafka, root, place)
    return sinks.make_sink(job, kafka)


def _run(
    root: "SparkSession",
    job: Job,
    kafka: ClientSettings,
    folder: Path,
    records: int,
    sink: sinks.Sink | None = None,
    spark: "SparkSession | None" = None,
) -> Told:
    """One query until it has read so many records of each source, or all. sink: None for none. Its
    session is its own, or `spark`, which no other query had: a listener hears of all queries of a
    session, of an ended one late."""
    from pyspark.sql import functions as f

    spark = spark or session(root, job)
    derived = derive(spark, job, kafka, streaming=True)
    counted = derived.rows.observe(OUTPUT, f.count(f.lit(1)).alias("rows"))
    writer = counted.writeStream.outputMode(job.sink.mode).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    inbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    listener = forward(spark, inbox)
    query = _to_sink(writer, derived.rows, sink).start()
    try:
        told = _follow(inbox, records * len(job.sources))
        if (problem := query.exception()) is not None:
            raise problem
    finally:
        query.stop()
        spark.streams.removeListener(listener)
        for table in derived.tables:
            table.close()
    return told


def _to_sink(
    writer: "DataStreamWriter", rows: "DataFrame", sink: sinks.Sink | None
) -> "DataStreamWriter":
    if sink is None:
        return writer.format("noop")
    if isinstance(sink, sinks.FileSink):
        return writer.format(sink.format).options(**sink.options())
    if isinstance(sink, TableSink):
        sink.fit_table(rows)
    else:
        sink.shaped(rows)  # a wrong key is told before anything is read
    return writer.foreachBatch(sink.write_rows)


def _follow(inbox: "queue.SimpleQueue[str | None]", records: int) -> Told:
    """The accounts of a query, until it has read so many records or has ended."""
    told: Told = []
    left = records
    while left > 0 and (said := inbox.get()) != ENDED:
        if said is None or said == IDLE:
            continue
        one = json.loads(said)
        if one["numInputRows"]:
            told.append(one)
            left -= int(one["numInputRows"])
    return told


def result_of(read: list[Told], derived: Told, written: Told) -> BenchResult:
    """Stages from the accounts of the runs: of each source, of the query, and of everything. Pure.
    The runs have batches of the same sizes, and their first ones count for themselves."""
    reading_ms = sum(_work_ms(told) for told in read)
    deriving_ms, writing_ms = _work_ms(derived), _work_ms(written)
    measured = written[1:]
    whole_ms = sum(_duration_ms(one, _WHOLE) for one in measured)
    stages = (
        Stage("read", min(reading_ms, deriving_ms)),
        Stage("derive", max(0, deriving_ms - reading_ms)),
        Stage("write", max(0, writing_ms - deriving_ms)),
        Stage("bookkeeping", max(0, whole_ms - writing_ms)),
    )
    return BenchResult(
        records=sum(int(one["numInputRows"]) for one in measured),
        rows=sum(int(_rows(one)) for one in measured),
        batches=len(measured),
        first_ms=_duration_ms(written[0], _WHOLE),
        stages=stages,
    )


def _work_ms(told: Told) -> int:
    return sum(_duration_ms(one, _WORK) for one in told[1:])


def _duration_ms(told: dict[str, Any], name: str) -> int:
    return int(told.get("durationMs", {}).get(name, 0))


def _rows(told: dict[str, Any]) -> int:
    return int(((told.get("observedMetrics") or {}).get(OUTPUT) or {}).get("rows") or 0)
