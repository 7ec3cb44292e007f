"""The sink of `delivery = "exactly-once"`: a micro-batch is one transaction.

Which batches the topic has comes from batch_ledger.py; here are the producer and the broker's
offsets.
"""

from typing import TYPE_CHECKING

from spark_local import delivery
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine.batch_ledger import BatchLedger
from spark_local.engine.clients import CLIENTS
from spark_local.engine.sinks import TopicSink
from spark_local.engine.transactions import SharedProducer, transactional_id
from spark_local.folder import JobFolder
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
        self._topics = sorted({one.place.topic for one in job.sources if one.place.topic})
        self._ledger = BatchLedger(job.name, place, self._plan)
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
        self._ledger.compare_witnesses(found)

    def options(self) -> dict[str, str]:
        return super().options() if self._producer is None else self._producer.options

    def write_rows(self, rows: "DataFrame", batch_id: int) -> None:
        """Returns when the batch is committed, now or by a former incarnation."""
        self._ledger.write_once(rows, batch_id, lambda mark: self._commit(rows, batch_id, mark))

    def _commit(self, rows: "DataFrame", batch_id: int, mark: str) -> None:
        assert self._producer is not None
        told = self._plan(batch_id)
        self._producer.begin_transaction()
        super().write_rows(rows, batch_id)
        self._producer.commit(self._job.name, told, mark)

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

    def _plan(self, batch: int) -> dict[delivery.Position, int]:
        """The offsets that a batch's transaction commits, from Spark's plan of it."""
        plan = (self._checkpoint / "offsets" / str(batch)).read_text()
        return delivery.offsets(batch, delivery.positions(plan, self._topics), self._topic)
