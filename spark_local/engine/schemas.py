"""Columns of sources that say "infer": from the last records of the topic, or from the files.

What was found at a job's first start is kept beside its checkpoint: a later start must read with
the same columns, or its state would not fit.
"""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine.clients import CLIENTS
from spark_local.folder import read_json, write_json
from spark_local.job import INFER, Job, Source, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE: Final = 100


def known(
    spark: "SparkSession", job: Job, kafka: ClientSettings, keep: Path | None
) -> dict[str, str]:
    """Source or table → columns, for all that have some. keep: the file that remembers what was
    inferred. Raises JobError when there is nothing to infer from."""
    remembered = read_json(keep) if keep else {}
    found: dict[str, str] = {}
    fresh: dict[str, Any] = {}
    for one in job.inputs:
        if isinstance(one, Source) and one.writers is not None:
            found[one.name] = one.writers.columns
        elif one.schema == INFER:
            if one.name not in remembered:
                fresh[one.name] = infer(spark, one, kafka)
            found[one.name] = str(remembered.get(one.name) or fresh[one.name])
        elif one.schema:
            found[one.name] = one.schema
    if keep and fresh:
        keep.parent.mkdir(parents=True, exist_ok=True)
        write_json(keep, remembered | fresh)
    return found


def infer(spark: "SparkSession", one: Source | Table, kafka: ClientSettings) -> str:
    """The columns of one source as Spark writes them."""
    if one.place.file:
        return _of_files(spark, one.place.file.path, one.place.file.format, one.place.file.options)
    assert one.place.topic is not None
    values = last_values(kafka, one.place.topic, SAMPLE)
    if not values:
        raise JobError(
            f"topic {one.place.topic} has no records to infer the columns of {one.name} from",
            "write the columns as its schema, or start the job when there are some",
            final=False,
            waits=True,
        )
    with tempfile.NamedTemporaryFile("wb", suffix=".txt") as sample:
        sample.write(b"\n".join(value.replace(b"\n", b" ") for value in values) + b"\n")
        sample.flush()
        found = _of_files(spark, sample.name, one.format, one.options)
    if not found or found.startswith("_corrupt_record"):
        problem = f"the last {len(values)} values of topic {one.place.topic} are not {one.format}"
        raise JobError(problem, "write format and schema of the source")
    return found


def _of_files(spark: "SparkSession", path: str, form: str, options: dict[str, str]) -> str:
    reader = spark.read.options(inferSchema="true", inferTimestamp="true", mode="DROPMALFORMED")
    schema = reader.options(**options).format(form).load(path).schema
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema)


def last_values(kafka: ClientSettings, topic: str, most: int) -> list[bytes]:
    """Values of the last records of every partition, `most` in all at most, without Spark. Raises
    JobError, ClientError."""
    found: list[bytes] | None = CLIENTS.call("last_values", kafka, topic, most)
    if found is None:
        raise no_topic(topic)
    return found


def no_topic(topic: str) -> JobError:
    """It may still come, so the job waits for it."""
    remedy = f"penstock topic create {topic} makes it; the job waits for it"
    return JobError(f"there is no topic {topic}", remedy, final=False, waits=True)


def columns(spark: "SparkSession", schema: str) -> list[str]:
    """Names of the columns. Raises JobError when Spark does not take them."""
    from pyspark.sql.types import StructType

    try:
        return [field.name for field in StructType.fromDDL(schema)]
    except Exception as problem:
        said = str(problem).splitlines()[0]
        raise JobError(f"Spark cannot read the schema {schema!r}: {said}", "correct it") from None


def as_text(schemas: dict[str, str]) -> str:
    """For people."""
    return json.dumps(schemas, indent=2)
