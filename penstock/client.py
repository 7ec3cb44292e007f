"""confluent-kafka clients for an appliance. Keywords are librdkafka's properties with `_` for `.`.

`read` gives itself its partitions by `assign`; a `consumer` may also subscribe with a group.id.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.1


class Connection:
    """Where the appliance is; makes clients for it. Nothing is connected before they are used."""

    def __init__(self, bootstrap: str, settings: dict[str, Any]) -> None:
        self.bootstrap = bootstrap
        self._settings = settings

    @contextmanager
    def producer(self, **settings: Any) -> Iterator[Producer]:
        """An idempotent producer with acks=all. Leaving the block waits until everything is
        acknowledged; raises KafkaException for the first record that was not."""
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        base = {"enable_idempotence": True, "acks": "all", "on_delivery": delivered}
        producer = Producer(self._config(**base | settings))
        yield producer
        left = producer.flush(_TIMEOUT_S)
        if failures:
            raise KafkaException(failures[0])
        if left:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{left} not acknowledged"))

    def consumer(self, *topics: str, offset: int = OFFSET_BEGINNING, **settings: Any) -> Consumer:
        """A consumer that is assigned every partition of `topics` from `offset` (OFFSET_BEGINNING,
        OFFSET_END, or a number). It commits nothing. Raises KafkaException for an unknown topic."""
        consumer = Consumer(
            self._config(
                **{
                    "group_id": "penstock",
                    "enable_auto_commit": False,
                    "auto_offset_reset": "error",
                }
                | settings
            )
        )
        if topics:
            consumer.assign(
                [TopicPartition(name, p, offset) for name, p in self.partitions(*topics)]
            )
        return consumer

    def read(self, *topics: str, offset: int = OFFSET_BEGINNING) -> Iterator[Message]:
        """Every record of `topics` that is there, each partition in order."""
        unread = set(self.partitions(*topics))
        consumer = self.consumer(
            *topics, offset=offset, enable_partition_eof=True, fetch_wait_max_ms=20
        )
        try:
            while unread:
                message = consumer.poll(_POLL_S)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard((str(message.topic()), int(message.partition() or 0)))
                elif not error.retriable():
                    raise KafkaException(error)
        finally:
            consumer.close()

    def admin(self, **settings: Any) -> AdminClient:
        """For topics and settings; keep it until its answers have come."""
        return AdminClient(self._config(**settings))

    def partitions(self, *topics: str) -> list[tuple[str, int]]:
        """(topic, partition) of each partition. Raises KafkaException for an unknown topic."""
        admin = self.admin()
        answers = admin.describe_topics(TopicCollection(list(topics)), request_timeout=_TIMEOUT_S)
        return [
            (name, partition.id)
            for name, answer in answers.items()
            for partition in answer.result(_TIMEOUT_S + 1).partitions
        ]

    def _config(self, **settings: Any) -> dict[str, Any]:
        merged = self._settings | settings
        return {
            "bootstrap.servers": self.bootstrap,
            **{
                # The names of callbacks are the only ones with underscores.
                key if callable(value) else key.replace("_", "."): value
                for key, value in merged.items()
            },
        }


def connect(bootstrap: str | None = None, **settings: Any) -> Connection:
    """A connection to `bootstrap`, else $PENSTOCK_BOOTSTRAP, else localhost:9092."""
    return Connection(
        bootstrap or os.environ.get("PENSTOCK_BOOTSTRAP") or DEFAULT_BOOTSTRAP, settings
    )
