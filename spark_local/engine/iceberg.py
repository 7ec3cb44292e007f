"""A table of Apache Iceberg as the sink, in a catalog that is a folder.

The snapshot's summary says which batch it has: docs/decisions/0120.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from spark_local.engine.lake import SINK_CATALOG, open_iceberg
from spark_local.engine.table_sink import Fields, TableSink, several_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


class IcebergSink(TableSink):
    """Each commit is a snapshot with a mark in its summary."""

    @property
    def _name(self) -> str:
        return f"{SINK_CATALOG}.{self._table.name}"

    def _open(self) -> None:
        open_iceberg(self._spark, self._table, SINK_CATALOG)

    def _is_there(self) -> bool:
        return bool(self._spark.catalog.tableExists(self._name))

    def _schema(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._spark.table(self._name).schema.json())
        return found

    def _append(self, rows: "DataFrame") -> None:
        rows.writeTo(self._name).append()

    def _merge(self, rows: "DataFrame") -> None:
        latest = self._latest(rows)
        latest.createOrReplaceTempView(_ROWS)
        sets = ", ".join(f"t.`{name}` = s.`{name}`" for name in self._columns)
        names = ", ".join(f"`{name}`" for name in self._columns)
        values = ", ".join(f"s.`{name}`" for name in self._columns)
        gone = self._gone()
        try:
            latest.sparkSession.sql(
                f"MERGE INTO {self._name} t USING {_ROWS} s ON {self._same_key()} "
                f"WHEN MATCHED AND {gone} THEN DELETE WHEN MATCHED THEN UPDATE SET {sets} "
                f"WHEN NOT MATCHED AND NOT {gone} THEN INSERT ({names}) VALUES ({values})"
            )
        except Exception as problem:
            if "MERGE_CARDINALITY_VIOLATION" not in str(problem):
                raise
            raise several_rows() from problem

    def _commit(self, write: Callable[[], None], mark: str) -> None:
        work = _Work(write)
        jvm: Any = self._spark._jvm
        kind = jvm.java.lang.Class.forName("java.lang.RuntimeException")
        marks = {_JOB: self._job.name, _MARK: mark}
        jvm.org.apache.iceberg.spark.CommitMetadata.withCommitProperties(marks, work, kind)
        if work.problem is not None:
            raise work.problem

    def _maintain(self) -> None:
        """The newest snapshot that says what the table has stays."""
        call = f"CALL {SINK_CATALOG}.system."
        table = f"table => '{self._table.name}'"
        newest = self._spark.sql(
            f"SELECT unix_millis(max(committed_at)) FROM {self._name}.snapshots "
            f"WHERE summary['{_MARK}'] IS NOT NULL"
        ).collect()[0][0]
        until = min(time.time_ns() // 1_000_000 - self._table.keep_ms, newest)
        moment = datetime.fromtimestamp(until / 1000, UTC).isoformat(timespec="milliseconds")
        options = "map('rewrite-all', 'false', 'min-input-files', '5')"
        self._spark.sql(f"{call}rewrite_data_files({table}, options => {options})").collect()
        self._spark.sql(
            f"{call}expire_snapshots({table}, older_than => TIMESTAMP '{moment}', retain_last => 1)"
        ).collect()

    def _make(self, wanted: Fields) -> None:
        parts = ", ".join(self._table.partition_by)
        said = ", ".join(f"'{key}' = '{value}'" for key, value in _PROPERTIES.items())
        text = f"CREATE TABLE {self._name} ({self._ddl(wanted)}) USING iceberg"
        text += f" PARTITIONED BY ({parts})" if parts else ""
        try:
            self._spark.sql(f"{text} TBLPROPERTIES ({said})")
        except Exception as problem:
            raise self._cannot_be_made(problem) from None

    def _add_columns(self, new: Fields) -> None:
        self._spark.sql(f"ALTER TABLE {self._name} ADD COLUMNS ({self._ddl(new)})")

    def _ddl(self, fields: Fields) -> str:
        text = json.dumps({"type": "struct", "fields": fields})
        types: Any = self._spark._jvm.org.apache.spark.sql.types.DataType
        return str(types.fromJson(text).toDDL())

    def _marks(self) -> list[str]:
        found = self._spark.sql(
            f"SELECT DISTINCT summary['{_MARK}'] AS mark FROM {self._name}.snapshots "
            f"WHERE summary['{_JOB}'] = '{self._job.name}'"
        ).collect()
        return [row.mark for row in found]


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
