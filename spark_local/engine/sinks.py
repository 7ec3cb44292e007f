"""Sinks: how the rows of one micro-batch, or of a batch job, get where they go.

A delivery is a sink of its own behind `write(rows, batch_id)`: those here write at least once,
exactly_once.py has the other. `Gate` lets the writing of a batch end before the job is stopped.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine.clients import CLIENTS, ClientError, ClientsGone
from spark_local.engine.sources import jdbc_options
from spark_local.engine.value_writers import JSON_OPTIONS, TIMES, make_writer
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PRODUCER: Final = {
    "kafka.compression.type": "lz4",
    "kafka.linger.ms": "5",
    "kafka.batch.size": "262144",
    "kafka.client.id": "penstock-jobs",
}
_ROW_BYTES: Final = 1 << 20
"""Kafka's max.request.size unless it is set."""
_MEMORY_BYTES: Final = 32 << 20
"""Kafka's buffer.memory unless it is set."""


class Stopping(Exception):
    """The gate is closed: this batch is not begun."""


class Gate:
    """Every batch is written inside; once closed, none begins any more. before: is called with the
    number of each batch, and what it raises is the failure of the batch."""

    def __init__(self, before: Callable[[int], None] = lambda _: None) -> None:
        self._before = before
        self._lock = threading.Lock()
        self._closed = False
        self.last = -1

    def write_batch(self, sink: "Sink", rows: "DataFrame", batch_id: int) -> None:
        """Raises Stopping when the gate is closed."""
        with self._lock:
            if self._closed:
                raise Stopping
            self._before(batch_id)
            sink.write_rows(rows, batch_id)
            self.last = batch_id

    def close(self, limit_s: float) -> int | None:
        """Wait for the batch that is being written: its number, -1 when there was none, None when
        it does not end in time."""
        self._closed = True
        if not self._lock.acquire(timeout=limit_s):
            return None
        self._lock.release()
        return self.last


class Sink:
    """At least once: a batch that is written again adds the same rows again."""

    def __init__(self, job: Job, kafka: ClientSettings) -> None:
        self._job = job
        self._kafka = kafka

    def prepare(self) -> None:
        """Make what must be there before the first row. Raises JobError."""

    def write_rows(self, rows: "DataFrame", batch_id: int) -> None:
        """Returns when the rows are where they belong."""
        writer = self.shaped(rows).write.format(self.format).options(**self.options())
        writer.mode("append").save()

    def close(self) -> None:
        """Closes the sink: nothing is written after it."""

    format = ""

    def shaped(self, rows: "DataFrame") -> "DataFrame":
        """Rows as the destination has them."""
        return rows

    def check_rows(self, rows: "DataFrame") -> None:
        """Raises JobError when such rows cannot be written, as somebody else says."""

    def prepare_rows(self, rows: "DataFrame") -> None:
        """Before the first row. Raises JobError when such rows cannot be written."""

    def options(self) -> dict[str, str]:
        """Options of Spark's writer."""
        return {}


class TopicSink(Sink):
    """Values are as value_writers.py makes them; the key is the text of one column, or an object of
    several."""

    format = "kafka"
    _row_bytes = _ROW_BYTES

    def __init__(self, job: Job, kafka: ClientSettings) -> None:
        super().__init__(job, kafka)
        self._values = make_writer(job.sink)

    def prepare(self) -> None:
        sink = self._job.sink
        assert sink.place.topic is not None
        words = (self._kafka, sink.place.topic, sink.partitions, sink.config)
        try:
            CLIENTS.call("create", *words)
        except ClientsGone:
            raise
        except ClientError as refused:
            problem = f"topic {sink.place.topic} cannot be made: {refused}"
            raise JobError(problem, "correct partitions or config of the sink") from None
        try:
            found = CLIENTS.call("setting", self._kafka, sink.place.topic, "max.message.bytes")
        except ClientError:  # Kafka's default holds until another attempt learns it
            return
        self._row_bytes = int(found or _ROW_BYTES)

    def shaped(self, rows: "DataFrame") -> "DataFrame":
        missing = [name for name in self._job.sink.key if name not in rows.columns]
        if missing:
            has = ", ".join(rows.columns)
            problem = (
                f"what the job derives has no column {missing[0]!r}, which its sink's key names"
            )
            raise JobError(problem, f"it has {has}")
        value = self._values.column(rows)
        return rows.select(self._key(rows).alias("key"), value.alias("value"))

    def check_rows(self, rows: "DataFrame") -> None:
        self._values.check_rows(rows)

    def prepare_rows(self, rows: "DataFrame") -> None:
        self.shaped(rows)
        self._values.register_rows(rows)

    def write_rows(self, rows: "DataFrame", batch_id: int) -> None:
        self._values.register_rows(rows)
        super().write_rows(rows, batch_id)

    def _key(self, rows: "DataFrame") -> "Column":
        from pyspark.sql import functions as f

        names = [f.col(f"`{name}`") for name in self._job.sink.key]
        if not names:
            return f.lit(None).cast("string")
        if len(names) == 1:
            kind = rows.schema[self._job.sink.key[0]].dataType.typeName()
            form = TIMES.get(kind)
            return f.date_format(names[0], form) if form else names[0].cast("string")
        return f.to_json(f.struct(*names), JSON_OPTIONS)

    def options(self) -> dict[str, str]:
        topic = self._job.sink.place.topic
        assert topic is not None
        return _PRODUCER | sizes(self._row_bytes) | self._kafka.spark() | {"topic": topic}


def sizes(row_bytes: int) -> dict[str, str]:
    """Options of a producer for a topic that takes batches of so many bytes, compressed."""
    if row_bytes <= _ROW_BYTES:  # Kafka's defaults, because a larger row may be small compressed
        return {}
    memory = min(max(2 * row_bytes, _MEMORY_BYTES), (1 << 31) - 1)
    return {"kafka.max.request.size": str(row_bytes), "kafka.buffer.memory": str(memory)}


class JdbcSink(Sink):
    """Rows are added to a table, which is made when it is not there."""

    format = "jdbc"

    def options(self) -> dict[str, str]:
        return jdbc_options(self._job.sink.place.jdbc)


class FileSink(Sink):
    """Rows as files. A stream writes them through Spark's own sink, where each appears once."""

    def __init__(self, job: Job, kafka: ClientSettings) -> None:
        super().__init__(job, kafka)
        assert job.sink.place.file is not None
        self.place = job.sink.place.file
        self.format = self.place.format

    def prepare(self) -> None:
        if "://" not in self.place.path:
            Path(self.place.path).parent.mkdir(parents=True, exist_ok=True)

    def options(self) -> dict[str, str]:
        return {**self.place.options, "path": self.place.path}


class TableColumns(Sink):
    """Rows of any table: they have the columns that the keys of the sink name."""

    def shaped(self, rows: "DataFrame") -> "DataFrame":
        table = self._job.sink.place.table
        assert table is not None
        named = [("[sink] key", one) for one in self._job.sink.key]
        named += [("[sink.table] latest", table.latest)] if table.latest else []
        named += [("[sink.table] deleted", table.deleted)] if table.deleted else []
        for key, name in named:
            if name not in rows.columns:
                problem = f"what the job derives has no column {name!r}, which {key} names"
                raise JobError(problem, f"it has {', '.join(rows.columns)}")
        return rows


def make_sink(job: Job, kafka: ClientSettings) -> Sink:
    """The sink that a job file asks for."""
    kinds: list[tuple[Any, type[Sink]]] = [
        (job.sink.place.topic, TopicSink),
        (job.sink.place.jdbc, JdbcSink),
        (job.sink.place.file, FileSink),
        (job.sink.place.table, TableColumns),  # to look at it; table_formats.py has what writes
    ]
    return next(kind for place, kind in kinds if place)(job, kafka)
