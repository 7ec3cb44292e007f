"""Sources of a job as views of its session: streams, or in a batch everything that is there.

A stream counts its bad records and remembers the newest record's time while it flows (`observe`):
that costs next to nothing, and only a batch that had a bad record is read again for dead letters.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from spark_local.client_settings import ClientSettings
from spark_local.engine import values
from spark_local.engine.lake import table_rows, table_stream
from spark_local.engine.schemas import columns
from spark_local.job import Job, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OBSERVED: Final = "source:"
"""What the names of observations begin with; the source's name follows."""


def connector(kafka: ClientSettings, source: Source | None = None) -> dict[str, str]:
    """Options of Spark's Kafka source that every reader of ours has."""
    common = kafka.spark() | {
        "kafka.client.id": "penstock-jobs",
        # What another job has not committed, or takes back, is no row.
        "kafka.isolation.level": "read_committed",
        "fetchOffset.numRetries": "3",
        "fetchOffset.retryIntervalMs": "500",
    }
    if source is not None and source.tasks:
        common["minPartitions"] = str(source.tasks)
    if source is not None and source.headers:
        common["includeHeaders"] = "true"
    lost = source is None or source.on_loss == "stop"
    return common | {"failOnDataLoss": str(lost).lower()}


def stream(
    spark: "SparkSession", job: Job, source: Source, schemas: dict[str, str], kafka: ClientSettings
) -> "DataFrame":
    """The source as a stream, with its watermark."""
    if source.place.topic is None:
        rows = (
            table_stream(spark, source)
            if source.place.table
            else _file_stream(spark, source, schemas)
        )
        return _timed(_with_event_time(rows, source), source)
    options = connector(kafka, source) | {
        "subscribe": source.place.topic,
        "maxOffsetsPerTrigger": str(source.max_records),
        "groupIdPrefix": f"{job.name}-spark",
    }
    raw = spark.readStream.format("kafka").options(**(options | _start(source))).load()
    schema = schemas[source.name]
    observed = values.read(raw, source, schema).observe(
        OBSERVED + source.name, *_observations(source)
    )
    return _timed(values.rows(observed, source, columns(spark, schema)), source)


def _observations(source: Source) -> "list[Any]":
    from pyspark.sql import functions as f

    return [
        f.count(f.when(values.bad(source), 1)).alias("bad"),
        f.count(f.when(f.col("value").isNull(), 1)).alias("tombstones"),
        f.unix_millis(f.max("timestamp")).alias("newest"),
    ]


def raw_batch(
    spark: "SparkSession",
    source: Source,
    kafka: ClientSettings,
    *,
    begin: dict[str, int] | None = None,
    end: dict[str, int] | None = None,
) -> "DataFrame":
    """Records of a topic as they are. begin, end: partition → offset; without: everything that its
    `start` lets in."""
    assert source.place.topic is not None
    options = connector(kafka, source) | {"subscribe": source.place.topic}
    options |= _start(source)
    if begin is not None:
        options.pop("startingTimestamp", None)
        options["startingOffsets"] = json.dumps({source.place.topic: begin})
    if end is not None:
        options["endingOffsets"] = json.dumps({source.place.topic: end})
    return spark.read.format("kafka").options(**options).load()


def batch(
    spark: "SparkSession", source: Source, schemas: dict[str, str], raw: "DataFrame | None"
) -> "DataFrame":
    """Everything that is there. raw: the records, of a source that is a topic."""
    if raw is None:
        return _timed(_with_event_time(_rest(spark, source, schemas), source), source)
    schema = schemas[source.name]
    records = values.read(raw, source, schema)
    return _timed(values.rows(records, source, columns(spark, schema)), source)


def _rest(spark: "SparkSession", source: Source, schemas: dict[str, str]) -> "DataFrame":
    if source.place.jdbc:
        return jdbc(spark, source.place.jdbc)
    if source.place.table:
        return table_rows(spark, source.place.table, source.name)
    assert source.place.file is not None
    return files(spark, source.place.file, schemas.get(source.name))


def files(spark: "SparkSession", place: Any, schema: str | None) -> "DataFrame":
    """Files, all at once. A line that cannot be read ends the reading: it has no dead letter."""
    reader = spark.read.format(place.format).options(**({"mode": "FAILFAST"} | place.options))
    return (reader.schema(schema) if schema else reader).load(place.path)


def jdbc(spark: "SparkSession", place: Any) -> "DataFrame":
    """A table of a database."""
    return spark.read.format("jdbc").options(**jdbc_options(place)).load()


def jdbc_options(place: Any) -> dict[str, str]:
    """Spark's options for a database; the password is read now."""
    from pathlib import Path

    options = {"url": place.url, "dbtable": place.table}
    if place.user:
        options["user"] = place.user
    if place.password_file:
        options["password"] = Path(place.password_file).read_text().strip()
    if place.driver:
        options["driver"] = place.driver
    return options


def _file_stream(spark: "SparkSession", source: Source, schemas: dict[str, str]) -> "DataFrame":
    place = source.place.file
    assert place is not None
    schema = schemas.get(source.name)
    if schema is None:  # Parquet says itself
        found = spark.read.format(place.format).load(place.path).schema
        reader = spark.readStream.schema(found)
    else:
        reader = spark.readStream.schema(schema)
    options = {"mode": "FAILFAST", "maxFilesPerTrigger": "100"} | place.options
    return reader.format(place.format).options(**options).load(place.path)


def _with_event_time(rows: "DataFrame", source: Source) -> "DataFrame":
    """Rows of a source that is no topic."""
    from pyspark.sql import functions as f

    if source.event_time is None or source.event_expression is None:
        return rows
    return rows.withColumn(source.event_time, f.expr(source.event_expression))


def _timed(rows: "DataFrame", source: Source) -> "DataFrame":
    if source.event_time and source.watermark_ms is not None:
        return rows.withWatermark(source.event_time, f"{source.watermark_ms} milliseconds")
    return rows


def _start(source: Source) -> dict[str, str]:
    if source.start.isdigit():
        return {
            "startingTimestamp": source.start,
            "startingOffsetsByTimestampStrategy": "latest",
        }
    # A batch cannot begin at the end.
    return {"startingOffsets": source.start}
