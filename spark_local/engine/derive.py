"""From a job's sources and tables to the DataFrame that it derives: SQL, or the user's function."""

import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import schemas, sources
from spark_local.engine.lake import open_lakes
from spark_local.engine.tables import CachedTable
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(slots=True)
class Derived:
    """The rows that a job derives, with its inputs by name."""

    rows: "DataFrame"
    schemas: dict[str, str]
    tables: list[CachedTable]
    raw: "dict[str, DataFrame]" = field(default_factory=dict)


def session(root: "SparkSession", job: Job) -> "SparkSession":
    """A session of the job's own, with its own views and settings."""
    spark = root.newSession()
    for name, value in job.spark.items():
        try:
            spark.conf.set(name, value)
        except Exception as refused:
            problem = f"[spark] {name} = {value}: {str(refused).splitlines()[0]}"
            raise JobError(problem, "correct it in the job file") from None
    open_lakes(spark, job)
    return spark


def derive(
    spark: "SparkSession",
    job: Job,
    kafka: ClientSettings,
    *,
    streaming: bool,
    keep: Path | None = None,
    last: int | None = None,
    read_tables: bool = True,
) -> Derived:
    """Make the views of `spark` and what the job derives from them.

    streaming: as streams, else everything that is there. keep: where inferred columns are
    remembered. last: at most so many records of each partition, the newest. read_tables: without,
    a table is read when somebody asks for rows. Raises JobError and what Spark raises for a wrong
    query.
    """
    known = schemas.known(spark, job, kafka, keep)
    found: dict[str, DataFrame] = {}
    raw: dict[str, DataFrame] = {}
    for source in job.sources:
        if source.place.topic:
            ends = _ends(kafka, source.place.topic)
            if not streaming:
                begin = {p: max(0, at - last) for p, at in ends.items()} if last else None
                raw[source.name] = sources.raw_batch(spark, source, kafka, begin=begin)
        if streaming:
            found[source.name] = sources.stream(spark, job, source, known, kafka)
        else:
            found[source.name] = sources.batch(spark, source, known, raw.get(source.name))
    tables = []
    for table in job.tables:
        if table.place.topic:
            _ends(kafka, table.place.topic)
        cached = CachedTable(spark, table, known, kafka)
        tables.append(cached)
        if read_tables:
            cached.refresh()
        found[table.name] = cached.view()
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    return Derived(_query(spark, job, found), known, tables, raw)


def _ends(kafka: ClientSettings, topic: str) -> dict[str, int]:
    from spark_local.engine.tables import ends_of

    return ends_of(kafka, topic)


def _query(spark: "SparkSession", job: Job, found: "dict[str, DataFrame]") -> "DataFrame":
    if job.sql is not None:
        return spark.sql(job.sql)
    rows = _function(job)(spark, found)
    if not hasattr(rows, "writeStream"):
        assert job.python is not None
        problem = f"{job.python[1]} of {job.python[0]} gave {type(rows).__name__}, no DataFrame"
        raise JobError(problem, "return the DataFrame that the job derives")
    return rows


def _function(job: Job) -> Any:
    """The user's function. Raises JobError when the file has none or cannot be loaded."""
    assert job.python is not None
    file, name = job.python
    path = job.path.parent / file
    spec = importlib.util.spec_from_file_location(f"penstock_job_{job.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        raise JobError(f"{file} cannot be loaded: {problem!r}", "correct it") from problem
    function = getattr(module, name, None)
    if not callable(function):
        raise JobError(f"{file} has no function {name}", "write def name(spark, sources)")
    return function
