"""A table of Delta Lake as the sink: a folder with a log of its own, without a catalog.

The commit's transaction (`txn`: an application's id and its version) says which batch it has:
docs/decisions/0139.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from spark_local import delivery
from spark_local.engine.lake import is_delta
from spark_local.engine.table_sink import Fields, TableSink, several_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTING: Final = "spark.databricks.delta.write."
"""Before a transaction's words, for a merge: it takes no options."""
_SEVERAL: Final = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
_HOUR_MS: Final = 3_600_000


class DeltaSink(TableSink):
    """Each commit has a transaction of this job and its query, whose version is the batch."""

    stored_as: ClassVar[Mapping[str, str]] = {}
    _transaction: Mapping[str, str] = MappingProxyType({})
    """Application and version of the commit that is being made."""

    def _open(self) -> None:
        path = self._jvm.org.apache.hadoop.fs.Path(self._table.location)
        # A folder that was deleted meanwhile is still known to this JVM.
        self._jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(self._session, path)

    def _is_there(self) -> bool:
        return is_delta(self._spark, self._table)

    def _schema(self) -> dict[str, Any]:
        rows = self._spark.read.format("delta").load(self._table.location)
        found: dict[str, Any] = json.loads(rows.schema.json())
        return found

    def _make(self, wanted: Fields) -> None:
        keep = f"interval {self._table.keep_ms} milliseconds"
        properties = {
            "delta.logRetentionDuration": keep,
            "delta.deletedFileRetentionDuration": keep,
            "delta.enableDeletionVectors": "false",  # few readers know them
        }
        try:
            self._add_no_rows(wanted, properties)
        except Exception as problem:
            raise self._cannot_be_made(problem) from None

    def _add_columns(self, new: Fields) -> None:
        self._add_no_rows(self._schema()["fields"] + new, {"mergeSchema": "true"})

    def _add_no_rows(self, fields: Fields, options: dict[str, str]) -> None:
        from pyspark.sql.types import StructType

        shape = StructType.fromJson({"type": "struct", "fields": fields})
        writer = self._spark.createDataFrame([], shape).write.format("delta").options(**options)
        if self._table.partition_by:
            writer = writer.partitionBy(*self._table.partition_by)
        writer.mode("append").save(self._table.location)

    def _append(self, rows: "DataFrame") -> None:
        writer = rows.write.format("delta").mode("append")
        writer.options(**self._transaction).save(self._table.location)

    def _merge(self, rows: "DataFrame") -> None:
        latest = self._latest(rows)
        values = {f"`{name}`": f"s.`{name}`" for name in self._columns}
        gone = self._gone()
        spark = latest.sparkSession  # of the query, whose settings are a copy
        merge = _aliased(self._delta(spark), "t").merge(
            _aliased(latest._jdf, "s"), self._same_key()
        )
        merge = merge.whenMatched(gone).delete().whenMatched().updateExpr(values)
        for name, value in self._transaction.items():
            spark.conf.set(_SETTING + name, value)
        try:
            merge.whenNotMatched(f"NOT {gone}").insertExpr(values).execute()
        except Exception as problem:
            if _SEVERAL not in str(problem):
                raise
            raise several_rows() from problem
        finally:
            for name in self._transaction:
                spark.conf.unset(_SETTING + name)

    def _commit(self, write: Callable[[], None], mark: str) -> None:
        ((query, batch),) = delivery.marks([("", "", 0, mark)]).items()
        self._transaction = {
            "txnAppId": self._application + query,
            "txnVersion": str(batch),
        }
        write()

    def _maintain(self) -> None:
        """Compact and vacuum; the transactions of the log never expire."""
        self._delta(self._spark).optimize().executeCompaction()
        self._delta(self._spark).vacuum(self._table.keep_ms / _HOUR_MS)

    def _marks(self) -> list[str]:
        log = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            self._session, self._table.location
        )
        told = log.unsafeVolatileSnapshot().transactions().iterator()
        found = []
        while told.hasNext():
            one = told.next()
            application, batch = str(one._1()), int(one._2())
            if application.startswith(self._application):
                query = application.removeprefix(self._application)
                found.append(delivery.mark(query, batch))
        return found

    @property
    def _application(self) -> str:
        """How the ids of this job's transactions begin; the query's id follows."""
        return f"penstock/{self._job.name}/"

    def _delta(self, spark: "SparkSession") -> Any:
        tables = self._jvm.io.delta.tables.DeltaTable
        return tables.forPath(spark._jsparkSession, self._table.location)

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm

    @property
    def _session(self) -> Any:
        return self._spark._jsparkSession


def _aliased(rows: Any, name: str) -> Any:
    """Java's `rows.as(name)`, which is a word of Python's."""
    return getattr(rows, "as")(name)
