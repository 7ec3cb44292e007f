"""The sink of `[sink.table]`: a table of Apache Iceberg, in a catalog that is a folder.

A micro-batch is one commit of the table. Its snapshot says, in the same commit, which batch of
which query it has; a batch that is run again is found there and not written (batch_ledger.py). Why
so: docs/decisions/0120.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from spark_local import delivery
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine.batch_ledger import BatchLedger
from spark_local.engine.jars import need_tables
from spark_local.engine.sinks import Sink
from spark_local.folder import JobFolder
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOG: Final = "penstock_lake"
_ROWS: Final = "penstock_batch"
_MARK: Final = "penstock.mark"
"""Key of a snapshot's summary: the query's id and the batch's number."""
_JOB: Final = "penstock.job"
_PROPERTIES: Final = {
    "format-version": "2",
    "write.merge.mode": "merge-on-read",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_MAKE_REMEDY: Final = "correct partition_by or path, or the columns' types"
_STORED_AS: Final = {"byte": "integer", "short": "integer"}


class IcebergSink(Sink):
    """The sink of one attempt: `prepare`, `fit_table`, `write_rows` for each batch."""

    def __init__(
        self,
        job: Job,
        kafka: ClientSettings,
        spark: "SparkSession",
        place: JobFolder,
        tell: Callable[[str], None],
    ) -> None:
        """tell: takes a line for the job's log."""
        super().__init__(job, kafka)
        assert job.sink.place.table is not None
        self._table = job.sink.place.table
        self._name = f"{CATALOG}.{self._table.name}"
        self._spark = spark
        self._ledger = BatchLedger(job.name, place, self._plan, sink="table")
        self._tell = tell
        self._columns: list[str] = []
        self._maintained_at = time.monotonic()

    def prepare(self) -> None:
        """Open the catalog, and learn which batches the table has. Raises JobError."""
        need_tables()
        from py4j.java_gateway import JavaClass

        if not isinstance(self._spark._jvm.org.apache.iceberg.spark.CommitMetadata, JavaClass):
            problem = "the runner was started before the jars of Apache Iceberg were here"
            raise JobError(problem, "end penstock job serve and start it again")
        catalog = f"spark.sql.catalog.{CATALOG}"
        self._spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        self._spark.conf.set(f"{catalog}.type", "hadoop")
        self._spark.conf.set(f"{catalog}.warehouse", self._table.path)
        self._spark.conf.set(f"{catalog}.cache-enabled", "false")
        if self._job.batch:
            return
        self._ledger.compare_witnesses(self._marks())

    def fit_table(self, rows: "DataFrame") -> None:
        """Make the table for such rows, or add the columns that are new. Raises JobError when the
        rows do not fit it."""
        self._check_columns(rows)
        kept = rows.drop(self._table.deleted) if self._table.deleted else rows
        wanted = _nullable(json.loads(kept.schema.json()))
        self._columns = list(kept.columns)
        if not self._is_there():
            self._make(wanted)
            return
        has = json.loads(self._spark.table(self._name).schema.json())
        new = new_columns(self._table.name, has, wanted)
        if new:
            self._spark.sql(f"ALTER TABLE {self._name} ADD COLUMNS ({self._ddl(new)})")
            names = ", ".join(one["name"] for one in new)
            self._tell(f"table {self._table.name} got columns: {names}")

    def write_rows(self, rows: "DataFrame", batch_id: int) -> None:
        """Returns when the batch is committed, now or by a former incarnation."""
        if self._job.batch:
            self.fit_table(rows)
            self._append(rows)
            return
        write = self._merge if self._job.sink.mode == "update" else self._append

        def commit(mark: str) -> None:
            self._commit(lambda: write(rows), {_JOB: self._job.name, _MARK: mark})

        if self._ledger.write_once(rows, batch_id, commit):
            self._maintain()

    def _append(self, rows: "DataFrame") -> None:
        rows.writeTo(self._name).append()

    def _merge(self, rows: "DataFrame") -> None:
        latest = self._latest(rows)
        latest.createOrReplaceTempView(_ROWS)
        keys = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in self._job.sink.key)
        sets = ", ".join(f"t.`{name}` = s.`{name}`" for name in self._columns)
        names = ", ".join(f"`{name}`" for name in self._columns)
        values = ", ".join(f"s.`{name}`" for name in self._columns)
        gone = f"coalesce(s.`{self._table.deleted}`, false)" if self._table.deleted else "false"
        try:
            latest.sparkSession.sql(
                f"MERGE INTO {self._name} t USING {_ROWS} s ON {keys} "
                f"WHEN MATCHED AND {gone} THEN DELETE WHEN MATCHED THEN UPDATE SET {sets} "
                f"WHEN NOT MATCHED AND NOT {gone} THEN INSERT ({names}) VALUES ({values})"
            )
        except Exception as problem:
            if "MERGE_CARDINALITY_VIOLATION" not in str(problem):
                raise
            told = "a batch has several rows of one key, and nothing says which of them counts"
            remedy = (
                'write [sink.table] latest = "COLUMN": the row that has most there, for example '
                "_offset of a source with metadata = true"
            )
            raise JobError(told, remedy) from problem

    def _latest(self, rows: "DataFrame") -> "DataFrame":
        """One row for each key, where the sink says which."""
        if self._table.latest is None:
            return rows
        from pyspark.sql import functions as f

        whole = f.struct(*(f.col(f"`{name}`") for name in rows.columns))
        newest = f.max_by(whole, f.col(f"`{self._table.latest}`")).alias("row")
        keys = [f.col(f"`{key}`").alias(f"__key{i}") for i, key in enumerate(self._job.sink.key)]
        return rows.groupBy(*keys).agg(newest).select("row.*")

    def _commit(self, write: Callable[[], None], marks: dict[str, str]) -> None:
        """Call `write`, whose one commit has marks in its snapshot's summary."""
        work = _Work(write)
        jvm: Any = self._spark._jvm
        kind = jvm.java.lang.Class.forName("java.lang.RuntimeException")
        jvm.org.apache.iceberg.spark.CommitMetadata.withCommitProperties(marks, work, kind)
        if work.problem is not None:
            raise work.problem

    def _maintain(self) -> None:
        """Make one file of small ones and let old snapshots expire, when it is time. The newest
        snapshot that says what the table has stays."""
        if time.monotonic() - self._maintained_at < self._table.maintain_ms / 1000:
            return
        self._maintained_at = time.monotonic()
        call = f"CALL {CATALOG}.system."
        table = f"table => '{self._table.name}'"
        newest = self._spark.sql(
            f"SELECT unix_millis(max(committed_at)) FROM {self._name}.snapshots "
            f"WHERE summary['{_MARK}'] IS NOT NULL"
        ).collect()[0][0]
        until = min(time.time_ns() // 1_000_000 - self._table.keep_ms, newest)
        moment = datetime.fromtimestamp(until / 1000, UTC).isoformat(timespec="milliseconds")
        try:
            options = "map('rewrite-all', 'false', 'min-input-files', '5')"
            self._spark.sql(f"{call}rewrite_data_files({table}, options => {options})").collect()
            self._spark.sql(
                f"{call}expire_snapshots({table}, older_than => TIMESTAMP '{moment}', "
                "retain_last => 1)"
            ).collect()
        except Exception as problem:  # rows are there: the next time may do
            self._tell(f"table {self._table.name} was not maintained: {str(problem)[:200]}")

    def _make(self, wanted: list[dict[str, Any]]) -> None:
        parts = ", ".join(self._table.partition_by)
        said = ", ".join(f"'{key}' = '{value}'" for key, value in _PROPERTIES.items())
        text = f"CREATE TABLE {self._name} ({self._ddl(wanted)}) USING iceberg"
        text += f" PARTITIONED BY ({parts})" if parts else ""
        try:
            self._spark.sql(f"{text} TBLPROPERTIES ({said})")
        except Exception as problem:
            told = str(problem).splitlines()[0][:300]
            problem_text = f"table {self._table.name} cannot be made in {self._table.path}: {told}"
            raise JobError(problem_text, _MAKE_REMEDY) from None

    def _check_columns(self, rows: "DataFrame") -> None:
        named = [("[sink] key", one) for one in self._job.sink.key]
        named += [("[sink.table] latest", self._table.latest or "")] * bool(self._table.latest)
        named += [("[sink.table] deleted", self._table.deleted or "")] * bool(self._table.deleted)
        for key, name in named:
            if name not in rows.columns:
                problem = f"what the job derives has no column {name!r}, which {key} names"
                raise JobError(problem, f"it has {', '.join(rows.columns)}")

    def _ddl(self, fields: list[dict[str, Any]]) -> str:
        text = json.dumps({"type": "struct", "fields": fields})
        types: Any = self._spark._jvm.org.apache.spark.sql.types.DataType
        return str(types.fromJson(text).toDDL())

    def _is_there(self) -> bool:
        return bool(self._spark.catalog.tableExists(self._name))

    def _marks(self) -> list[delivery.Noted]:
        """The marks of this job in the snapshots, in the form of a group's offsets."""
        if not self._is_there():
            return []
        found = self._spark.sql(
            f"SELECT DISTINCT summary['{_MARK}'] AS mark FROM {self._name}.snapshots "
            f"WHERE summary['{_JOB}'] = '{self._job.name}'"
        ).collect()
        newest = delivery.marks([("", "", 0, row.mark) for row in found])
        return [
            (self._table.name, "0", batch + 1, delivery.mark(query, batch))
            for query, batch in newest.items()
        ]

    def _plan(self, batch: int) -> dict[delivery.Position, int]:
        return delivery.offsets(batch, {}, self._table.name)


class _Work:
    """A function for Java to call on the thread that it calls from; py4j loses what it raises."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self.problem: Exception | None = None

    def call(self) -> None:
        """Called by Java."""
        try:
            self._function()
        except Exception as problem:
            self.problem = problem

    class Java:
        implements: Final = ["java.util.concurrent.Callable"]  # a list, as py4j wants it


def new_columns(
    table: str, has: dict[str, Any], wanted: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Columns of `wanted` that the table lacks. has: its schema, as Spark's JSON. Raises JobError
    for any other difference."""
    types = {one["name"]: _stored(one["type"]) for one in _nullable(has)}
    asked = {one["name"]: _stored(one["type"]) for one in wanted}
    remedy = "derive it as before, or write to another table ([sink.table] name)"
    for name, kind in types.items():
        if name not in asked:
            raise JobError(f"table {table} has a column {name!r}, and the job derives none", remedy)
        if asked[name] != kind:
            problem = f"column {name!r} of table {table} is {kind}, and the job derives "
            raise JobError(f"{problem}{asked[name]}", remedy)
    return [one for one in wanted if one["name"] not in types]


def _stored(kind: Any) -> Any:
    """The type that Iceberg keeps for one of Spark's."""
    if isinstance(kind, str):
        return _STORED_AS.get(kind, kind)
    if isinstance(kind, dict):
        return {k: _stored(v) if k != "name" else v for k, v in kind.items() if k != "metadata"}
    return [_stored(one) for one in kind] if isinstance(kind, list) else kind


def _nullable(schema: Any) -> Any:
    """Columns of a schema, each of which may be null, at every depth."""

    def loosened(one: Any) -> Any:
        if isinstance(one, list):
            return [loosened(each) for each in one]
        if not isinstance(one, dict):
            return one
        loose = {"nullable", "containsNull", "valueContainsNull"}
        kept = {k: True if k in loose else loosened(v) for k, v in one.items()}
        return kept | ({"metadata": {}} if "metadata" in kept else {})

    return loosened(schema["fields"])
