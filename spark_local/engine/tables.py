"""Compacted topics as tables: the latest value of each key, kept in Spark's cache.

A stream that is joined with a cached table plans anew for every micro-batch and so sees what the
cache holds by then: replacing the cached rows is all that a refresh does. Between two caches a
micro-batch reads the topic itself, which is slower and as right.
Called by a job's `Running`; `watch` runs on a thread of its own.
"""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_local.client_settings import ClientSettings
from spark_local.engine import lake, sources, values
from spark_local.engine.clients import CLIENTS
from spark_local.engine.schemas import columns, no_topic
from spark_local.job import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Ends = dict[str, int]
"""Partition → next offset."""


class CachedTable:
    """One table of one job."""

    def __init__(
        self, spark: "SparkSession", table: Table, schemas: dict[str, str], kafka: ClientSettings
    ) -> None:
        self.table = table
        self._spark = spark
        self._schema = schemas.get(table.name)
        self._kafka = kafka
        self._ends: Ends | None = None
        self.refreshed = 0
        self.bad_until: Ends = {}
        self._cached = self._frame()

    @property
    def topic(self) -> str | None:
        return self.table.place.topic

    def view(self) -> "DataFrame":
        """The rows that the job's query joins with."""
        if self.topic is None:
            return self._cached
        latest = self._cached.where("latest.there")
        assert self._schema is not None
        names = [f"latest.row.`{name}` AS `{name}`" for name in columns(self._spark, self._schema)]
        return latest.selectExpr(*names)

    def refresh(self) -> bool:
        """Read it again if it has changed: whether it had."""
        ends = self.ends()
        if ends is not None and ends == self._ends:
            return False
        self._cached.unpersist()
        self._cached.persist()
        self._cached.count()
        self._ends = ends
        self.refreshed += 1
        return True

    def bad_records(self) -> list[Any]:
        """Records that were not taken because they cannot be read: key, value, topic, partition,
        offset."""
        if self.topic is None:
            return []
        found = self._cached.selectExpr("explode(bad) AS bad").select("bad.*").collect()
        return [one for one in found if one.offset >= self.bad_until.get(str(one.partition), 0)]

    def close(self) -> None:
        self._cached.unpersist()

    def ends(self) -> Ends | None:
        """Where the topic's partitions end, or a table's newest snapshot; None for what can change
        unseen."""
        if self.table.place.table:
            return {"snapshot": lake.newest_version(self._cached, self.table.place.table)}
        return None if self.topic is None else ends_of(self._kafka, self.topic)

    def _frame(self) -> "DataFrame":
        place = self.table.place
        if place.jdbc:
            return sources.jdbc(self._spark, place.jdbc)
        if place.table:
            return lake.table_rows(self._spark, place.table, self.table.name)
        if place.file:
            return sources.files(self._spark, place.file, self._schema)
        return self._latest()

    def _latest(self) -> "DataFrame":
        """One row per key: `latest` (there, row) and the `bad` records that were passed over."""
        from pyspark.sql import functions as f

        assert self.topic is not None
        assert self._schema is not None
        options = sources.connector(self._kafka) | {"subscribe": self.topic}
        # What cannot be read any more was replaced or deleted: no loss for a table.
        options |= {"startingOffsets": "earliest", "failOnDataLoss": "false"}
        raw = self._spark.read.format("kafka").options(**options).load()
        records = values.parsed(raw, self.table.format, self._schema, self.table.options)
        named = f.to_json(f.struct(*(f.col("row").getField(name) for name in self.table.key)))
        broken = f.col("value").isNotNull() & f.col(values.CORRUPT).isNotNull()
        row = f.struct(f.col("value").isNotNull().alias("there"), f.col("row").alias("row"))
        letter = f.struct("key", "value", "topic", "partition", "offset")
        return (
            records.withColumn("same", f.coalesce(f.col("key"), f.encode(named, "UTF-8")))
            .groupBy("same")
            .agg(
                f.max_by(row, f.when(~broken, f.col("offset"))).alias("latest"),
                f.collect_list(f.when(broken, letter)).alias("bad"),
            )
        )


def ends_of(kafka: ClientSettings, topic: str) -> Ends:
    """Partition → next offset. Raises JobError for a topic that is not there."""
    return {number: end for number, (_, end) in spans_of(kafka, topic).items()}


def spans_of(kafka: ClientSettings, topic: str) -> dict[str, tuple[int, int]]:
    """Partition → (first offset, next offset). Raises JobError for a topic that is not there,
    ClientError."""
    found: dict[str, tuple[int, int]] | None = CLIENTS.call("spans", kafka, topic)
    if found is None:
        raise no_topic(topic)
    return found


def refresh_tables(
    tables: list[CachedTable],
    ended: threading.Event,
    on_change: Callable[[CachedTable], None],
    on_trouble: Callable[[CachedTable, Exception], None],
) -> None:
    """Refresh each table when its time has come, until `ended`. Trouble is told, and tried again
    at the next time."""
    due = {id(one): time.monotonic() + one.table.refresh_ms / 1000 for one in tables}
    while not ended.wait(max(0.0, min(due.values()) - time.monotonic())):
        for one in tables:
            if due[id(one)] > time.monotonic():
                continue
            try:
                if one.refresh():
                    on_change(one)
            except Exception as trouble:  # the broker may be away; the old rows stay
                on_trouble(one, trouble)
            due[id(one)] = time.monotonic() + one.table.refresh_ms / 1000
