"""The sink of `[sink.table]` in any format; iceberg.py and delta.py have the formats.

A micro-batch is one commit of the table, which says in itself which batch of which query it has; a
batch that is run again is found there and not written (batch_ledger.py). Why so: docs/decisions/
0120 and 0139.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from spark_local import delivery
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine.batch_ledger import BatchLedger
from spark_local.engine.sinks import TableColumns
from spark_local.folder import JobFolder
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Fields = list[dict[str, Any]]
"""Columns as Spark's JSON has them."""
_STORED_AS: Final = {"byte": "integer", "short": "integer"}


class TableSink(TableColumns, ABC):
    """The sink of one attempt: `prepare`, `fit_table`, `write_rows` for each batch."""

    stored_as: ClassVar[Mapping[str, str]] = _STORED_AS
    """Type of Spark → the one that the format keeps for it."""

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
        self._spark = spark
        self._ledger = BatchLedger(job.name, place, self._plan, sink="table")
        self._tell = tell
        self._columns: list[str] = []
        self._maintained_at = time.monotonic()

    def prepare(self) -> None:
        """Open the table's place, and learn which batches the table has. Raises JobError."""
        self._open()
        if not self._job.batch:
            self._ledger.compare_witnesses(self._noted())

    def fit_table(self, rows: "DataFrame") -> None:
        """Make the table for such rows, or add the columns that are new. Raises JobError when the
        rows do not fit it."""
        kept = self._kept(self.shaped(rows))
        wanted = _nullable(json.loads(kept.schema.json()))
        self._columns = list(kept.columns)
        if not self._is_there():
            self._make(wanted)
            return
        new = new_columns(self._table.name, self._schema(), wanted, self.stored_as)
        if new:
            self._add_columns(new)
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
            self._commit(lambda: write(rows), mark)

        if self._ledger.write_once(rows, batch_id, commit):
            self._maintain_in_time()

    def _open(self) -> None:
        """Settings of the session. Raises JobError where the format's jars are missing."""

    @abstractmethod
    def _is_there(self) -> bool:
        """True if the table exists."""

    @abstractmethod
    def _schema(self) -> dict[str, Any]:
        """The table's columns, as Spark's JSON."""

    @abstractmethod
    def _make(self, wanted: Fields) -> None:
        """Make the table. Raises JobError."""

    @abstractmethod
    def _add_columns(self, new: Fields) -> None:
        """Add columns to the table."""

    @abstractmethod
    def _append(self, rows: "DataFrame") -> None:
        """Add rows, in the commit that `_commit` makes."""

    @abstractmethod
    def _merge(self, rows: "DataFrame") -> None:
        """Merge rows by key, in the commit that `_commit` makes."""

    @abstractmethod
    def _commit(self, write: Callable[[], None], mark: str) -> None:
        """Call `write`, whose one commit says `mark`."""

    @abstractmethod
    def _marks(self) -> list[str]:
        """The marks of this job's commits that the table has, one for each query at least."""

    @abstractmethod
    def _maintain(self) -> None:
        """Make large files of small ones and let old snapshots expire."""

    def _maintain_in_time(self) -> None:
        if time.monotonic() - self._maintained_at < self._table.maintain_ms / 1000:
            return
        self._maintained_at = time.monotonic()
        try:
            self._maintain()
        except Exception as problem:  # rows are there: the next time may do
            self._tell(f"table {self._table.name} was not maintained: {str(problem)[:200]}")

    def _kept(self, rows: "DataFrame") -> "DataFrame":
        """Rows without the column that says which of them delete."""
        return rows.drop(self._table.deleted) if self._table.deleted else rows

    def _same_key(self) -> str:
        """The condition that a row `s` is of the key of the table's row `t`."""
        return " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in self._job.sink.key)

    def _gone(self) -> str:
        """The condition that a row `s` deletes its key."""
        return f"coalesce(s.`{self._table.deleted}`, false)" if self._table.deleted else "false"

    def _latest(self, rows: "DataFrame") -> "DataFrame":
        """One row for each key, where the sink says which."""
        if self._table.latest is None:
            return rows
        from pyspark.sql import functions as f

        whole = f.struct(*(f.col(f"`{name}`") for name in rows.columns))
        newest = f.max_by(whole, f.col(f"`{self._table.latest}`")).alias("row")
        keys = [f.col(f"`{key}`").alias(f"__key{i}") for i, key in enumerate(self._job.sink.key)]
        return rows.groupBy(*keys).agg(newest).select("row.*")

    def _cannot_be_made(self, problem: Exception) -> JobError:
        told = str(problem).splitlines()[0][:300]
        text = f"table {self._table.name} cannot be made in {self._table.path}: {told}"
        return JobError(text, "correct partition_by or path, or the columns' types")

    def _noted(self) -> list[delivery.Noted]:
        """The table's marks, in the form of a group's offsets."""
        if not self._is_there():
            return []
        newest = delivery.marks([("", "", 0, mark) for mark in self._marks()])
        return [
            (self._table.name, "0", batch + 1, delivery.mark(query, batch))
            for query, batch in newest.items()
        ]

    def _plan(self, batch: int) -> dict[delivery.Position, int]:
        return delivery.offsets(batch, {}, self._table.name)


def several_rows() -> JobError:
    """A batch has several rows of one key."""
    return JobError(
        "a batch has several rows of one key, and nothing says which of them counts",
        'write [sink.table] latest = "COLUMN": the row that has most there, for example _offset of '
        "a source with metadata = true",
    )


def new_columns(
    table: str, has: dict[str, Any], wanted: Fields, stored_as: Mapping[str, str]
) -> Fields:
    """Columns of `wanted` that the table lacks. has: its schema, as Spark's JSON. stored_as: type
    of Spark → the format's. Raises JobError for any other difference."""
    types = {one["name"]: _stored(one["type"], stored_as) for one in _nullable(has)}
    asked = {one["name"]: _stored(one["type"], stored_as) for one in wanted}
    remedy = "derive it as before, or write to another table ([sink.table] name)"
    for name, kind in types.items():
        if name not in asked:
            raise JobError(f"table {table} has a column {name!r}, and the job derives none", remedy)
        if asked[name] != kind:
            problem = f"column {name!r} of table {table} is {kind}, and the job derives "
            raise JobError(f"{problem}{asked[name]}", remedy)
    return [one for one in wanted if one["name"] not in types]


def _stored(kind: Any, stored_as: Mapping[str, str]) -> Any:
    """The type that the table keeps for one of Spark's."""
    if isinstance(kind, str):
        return stored_as.get(kind, kind)
    if isinstance(kind, dict):
        kept = {k: v for k, v in kind.items() if k != "metadata"}
        return {k: _stored(v, stored_as) if k != "name" else v for k, v in kept.items()}
    return [_stored(one, stored_as) for one in kind] if isinstance(kind, list) else kind


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
