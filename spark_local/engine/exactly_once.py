"""The sink of `delivery = "exactly-once"`: a micro-batch is one transaction.

What is decided comes from spark_local/delivery.py; here are the producer, the broker's offsets, and
the files of the checkpoint.
"""

import json
from typing import TYPE_CHECKING

from spark_local import delivery
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine.clients import CLIENTS
from spark_local.engine.sinks import TopicSink
from spark_local.engine.transactions import SharedProducer, transactional_id
from spark_local.folder import JobFolder, read_json, write_json
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ExactlyOnceSink(TopicSink):
    """The exactly-once sink of one attempt: `prepare`, `write` for each batch, `close`."""

    def __init__(
        self, job: Job, kafka: ClientSettings, spark: "SparkSession", place: JobFolder
    ) -> None:
        super().__init__(job, kafka)
        self._spark = spark
        self._checkpoint = place.checkpoint
        self._file = place.path / "delivery.json"
        self._topics = sorted({one.place.topic for one in job.sources if one.place.topic})
        self._kept: delivery.Kept | None = None
        self._producer: SharedProducer | None = None

    def prepare(self) -> None:
        """Fence former incarnations, then learn what they committed. Raises JobError."""
        master = str(self._spark.sparkContext.master)
        if not master.startswith("local"):
            raise JobError(
                f'delivery = "exactly-once" needs a local master, and this is {master}: a '
                "transaction has one producer, and the workers have one each",
                'write [sink] delivery = "at-least-once", or run it with --master "local[*]"',
            )
        super().prepare()
        self._producer = SharedProducer(self._spark, super().options() | self._settings())
        asked = [*self._topics, self._topic]
        found = CLIENTS.call("committed", self._kafka, self._job.name, asked)
        self._kept = delivery.Kept.of(read_json(self._file))
        self._ledger = delivery.Ledger(self._job.name, self._begin(), self._kept, found)

    def options(self) -> dict[str, str]:
        return super().options() if self._producer is None else self._producer.options

    def write_rows(self, rows: "DataFrame", batch_id: int) -> None:
        """Returns when the batch is committed, now or by a former incarnation."""
        assert self._producer is not None
        if self._ledger.has(batch_id):
            # It is run all the same: the query's state is the sum of its batches.
            rows.write.format("noop").mode("overwrite").save()
            return
        query = self._query()
        assert query is not None
        self._keep(self._ledger.kept(query))
        told = self._plan(batch_id)
        self._producer.begin_transaction()
        super().write_rows(rows, batch_id)
        self._producer.commit(self._job.name, told, delivery.mark(query, batch_id))
        self._ledger.committed(batch_id)
        self._keep(self._ledger.kept(query))

    def close(self) -> None:
        """Closes the producer, which aborts an open transaction."""
        if self._producer is not None:
            self._producer.close()

    @property
    def _topic(self) -> str:
        assert self._job.sink.place.topic is not None
        return self._job.sink.place.topic

    def _settings(self) -> dict[str, str]:
        return {
            "kafka.transactional.id": transactional_id(self._job.name),
            "kafka.transaction.timeout.ms": str(self._job.sink.transaction_timeout_ms),
        }

    def _keep(self, kept: delivery.Kept) -> None:
        if kept != self._kept:
            write_json(self._file, kept.content(), sync=True)
            self._kept = kept

    def _query(self) -> str | None:
        """Id of the checkpoint's query; None when nothing was started from it."""
        file = self._checkpoint / "metadata"
        return str(json.loads(file.read_text())["id"]) if file.exists() else None

    def _plan(self, batch: int) -> dict[delivery.Position, int]:
        """The offsets that a batch's transaction commits, from Spark's plan of it."""
        plan = (self._checkpoint / "offsets" / str(batch)).read_text()
        return delivery.offsets(batch, delivery.positions(plan, self._topics), self._topic)

    def _begin(self) -> delivery.Checkpoint:
        planned, done = (
            [one.name for one in (self._checkpoint / kind).glob("*")]
            for kind in ("offsets", "commits")
        )
        batch, again = delivery.first(planned, done)
        return delivery.Checkpoint(self._query(), batch, self._plan(batch) if again else None)
