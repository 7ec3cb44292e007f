"""A transactional producer that the driver and the sink's tasks share.

Spark's Kafka sink sends with a producer that it keeps for the executor, found by its settings. The
tasks of a local master run in the driver's JVM: what is taken here from the same pool, with the
same settings, is the producer that they will send with. Tasks send as ever; only the driver begins
and commits. Had they another one after all, it would not be in a transaction and refuse to send.
"""

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from spark_local.delivery import Position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SERIALIZER: Final = "org.apache.kafka.common.serialization.ByteArraySerializer"
_CLOSE_S: Final = 5


def transactional_id(job: str) -> str:
    """The transactional id of a job's producer."""
    return f"penstock-job-{job}"


class SharedProducer:
    """One incarnation: a new one fences those before it. Of the thread that writes batches. Every
    method raises what the JVM does; afterwards only `close` is of use."""

    def __init__(self, spark: "SparkSession", options: dict[str, str]) -> None:
        """options: of Spark's sink, with `kafka.transactional.id`. Ends what a former incarnation
        left open; returns when what it had decided is done."""
        # A task that outlives its attempt still has the former incarnation's, and is fenced.
        self.options = options | {"kafka.penstock.incarnation": uuid.uuid4().hex}
        self._jvm: Any = spark._jvm
        package = self._jvm.org.apache.spark.sql.kafka010.producer
        self._pool = getattr(getattr(package, "InternalKafkaProducerPool$"), "MODULE$")
        settings = self._jvm.java.util.HashMap()
        for name, value in self.options.items():
            if name.startswith("kafka."):
                settings.put(name.removeprefix("kafka."), value)
        for part in ("key", "value"):
            settings.put(f"{part}.serializer", _SERIALIZER)
        self._cached = self._pool.acquire(settings)
        self._producer = self._cached.producer()
        try:
            self._producer.initTransactions()
        except Exception:
            self.close()
            raise

    def begin_transaction(self) -> None:
        """Begins a transaction, to which all that tasks send from now on belongs."""
        self._producer.beginTransaction()

    def commit(self, group: str, offsets: dict[Position, int], metadata: str) -> None:
        """Commit what was sent, together with these offsets of the group."""
        common, clients = self._jvm.org.apache.kafka.common, self._jvm.org.apache.kafka.clients
        told = self._jvm.java.util.HashMap()
        for (topic, partition), at in offsets.items():
            place = common.TopicPartition(topic, int(partition))
            told.put(place, clients.consumer.OffsetAndMetadata(at, metadata))
        member = clients.consumer.ConsumerGroupMetadata(group)
        self._producer.sendOffsetsToTransaction(told, member)
        self._producer.commitTransaction()

    def close(self) -> None:
        """Abort what is open, if the broker answers in some seconds; nobody sends with it any
        more."""
        with suppress(Exception):  # the JVM or the broker is gone, and with it what was open
            self._producer.close(self._jvm.java.time.Duration.ofSeconds(_CLOSE_S))
        with suppress(Exception):
            self._pool.release(self._cached)
