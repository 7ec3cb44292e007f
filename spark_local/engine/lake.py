"""Tables of Apache Iceberg and Delta Lake in a session: how they are opened and read.

A stream of a table is what is appended to it. Rows that are changed or deleted end it, or are
passed over where the job says so.
"""

from typing import TYPE_CHECKING, Any, Final

from spark_local.cause import JobError
from spark_local.engine.jars import need_delta, need_tables
from spark_local.engine.session import DELTA as DELTA_SETTINGS
from spark_local.engine.stores import open_stores
from spark_local.job import DELTA, ICEBERG, Job, LakeTable, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SINK_CATALOG: Final = "penstock_lake"
_FILES: Final = "100"
"""Of a table, in one micro-batch."""
_AGAIN: Final = "end penstock job serve and start it again"


def open_lakes(spark: "SparkSession", job: Job) -> None:
    """Let a session reach the buckets of the job's tables. Raises JobError, also where the jars of
    Delta Lake are missing."""
    open_stores(spark, job)
    places = (job.sink.place, *(one.place for one in job.inputs))
    if any(one.table.format == DELTA for one in places if one.table):
        _check_delta(spark)


def open_iceberg(spark: "SparkSession", table: LakeTable, catalog_name: str) -> None:
    """Give this session a catalog of that name for the table's folder. Raises JobError."""
    need_tables()
    from py4j.java_gateway import JavaClass

    jvm: Any = spark._jvm
    if not isinstance(jvm.org.apache.iceberg.spark.CommitMetadata, JavaClass):
        problem = "the runner was started before the jars of Apache Iceberg were here"
        raise JobError(problem, _AGAIN)
    catalog = f"spark.sql.catalog.{catalog_name}"
    spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{catalog}.type", "hadoop")
    spark.conf.set(f"{catalog}.warehouse", table.path)
    spark.conf.set(f"{catalog}.cache-enabled", "false")


def _check_delta(spark: "SparkSession") -> None:
    need_delta()
    if DELTA_SETTINGS["spark.sql.extensions"] not in (
        spark.conf.get("spark.sql.extensions", "") or ""
    ):
        problem = "the runner was started before the jars of Delta Lake were here"
        raise JobError(problem, _AGAIN)


def table_rows(spark: "SparkSession", table: LakeTable, name: str) -> "DataFrame":
    """The table as it is when rows are asked for. name: of the source or table in the job. Raises
    JobError, one that waits for a table that is not there."""
    return _loaded(spark, spark.read, table, name)


def table_stream(spark: "SparkSession", source: Source) -> "DataFrame":
    """The rows that are there, then those that are appended. Raises JobError as table_rows."""
    table = source.place.table
    assert table is not None
    skips = str(source.on_change == "skip").lower()
    options = {
        ICEBERG: {
            "streaming-skip-overwrite-snapshots": skips,
            "streaming-skip-delete-snapshots": skips,
            "streaming-max-files-per-micro-batch": _FILES,
        },
        DELTA: {"skipChangeCommits": skips, "maxFilesPerTrigger": _FILES},
    }[table.format]
    return _loaded(spark, spark.readStream.options(**options), table, source.name)


def _loaded(spark: "SparkSession", reader: Any, table: LakeTable, name: str) -> "DataFrame":
    if table.format == DELTA:
        if not is_delta(spark, table):
            raise _no_table(table)
        found: DataFrame = reader.format("delta").load(table.location)
        return found
    catalog = f"penstock_{name}"
    open_iceberg(spark, table, catalog)
    if not spark.catalog.tableExists(f"{catalog}.{table.name}"):
        raise _no_table(table)
    found = reader.format("iceberg").table(f"{catalog}.{table.name}")
    return found


def is_delta(spark: "SparkSession", table: LakeTable) -> bool:
    """True if there is a table of Delta Lake in its folder."""
    jvm: Any = spark._jvm
    return bool(jvm.io.delta.tables.DeltaTable.isDeltaTable(spark._jsparkSession, table.location))


def newest_version(rows: "DataFrame", table: LakeTable) -> int:
    """The number of the table's newest snapshot, -1 for none. Rows of `table_rows` are that one's
    from now on."""
    if table.format == DELTA:
        spark = rows.sparkSession
        jvm: Any = spark._jvm
        none = jvm.scala.Option.empty()
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table.location)
        return int(log.update(False, none, none).version())
    # The plan of a query that reads these rows has the same object.
    plan: Any = rows._jdf.queryExecution().analyzed()
    iceberg = plan.collectLeaves().apply(0).table().table()
    iceberg.refresh()
    snapshot = iceberg.currentSnapshot()
    return -1 if snapshot is None else int(snapshot.snapshotId())


def _no_table(table: LakeTable) -> JobError:
    """It may still come, so the job waits for it."""
    problem = f"there is no table {table.name} of format {table.format} in {table.path}"
    remedy = "the job waits for it; correct path, name or format if it is there"
    return JobError(problem, remedy, final=False, waits=True)
