"""Published states of jobs: the compacted topic __penstock_jobs, job name → its state as JSON.

The runner writes it, `penstock job status` and consoles read it, so neither needs Spark. A state
is written when it changes, at most once a second, and once a minute when nothing does.
"""

import json
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from spark_local.board import TOPIC
from spark_local.client_settings import ClientSettings

CONFIG: Final = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "86400000",
    "segment.bytes": "1048576",
    "segment.ms": "3600000",
}
_TIMEOUT_S: Final = 10.0
_QUIET: Final[dict[str, Any]] = {"log_level": 0, "client.id": "penstock-jobs"}


class States:
    """The writing side. A state that cannot be written now is not waited for: the next one says
    more."""

    def __init__(self, kafka: ClientSettings) -> None:
        self._kafka = kafka
        more = kafka.librdkafka(linger_ms=5, message_timeout_ms=30_000)
        self._producer = Producer(_QUIET | more)
        self._made = False

    def write_state(self, job: str, state: dict[str, Any] | None) -> None:
        """state None: the job is no more."""
        self._make()
        value = None if state is None else json.dumps(state).encode()
        with suppress(BufferError):
            self._producer.produce(TOPIC, value, key=job.encode())
        self._producer.poll(0)

    def close(self) -> None:
        """Wait a little until everything is written."""
        self._producer.flush(5)

    def _make(self) -> None:
        if not self._made:
            made = create(self._kafka, TOPIC, 1, CONFIG)
            self._made = made is not None


def create(
    kafka: ClientSettings, topic: str, partitions: int, config: dict[str, str]
) -> bool | None:
    """Creates a topic. True if it was made now; False when it existed, None when no broker answers.
    Raises KafkaException when the broker refuses it.
    """
    admin = AdminClient(_QUIET | kafka.librdkafka())
    new = NewTopic(topic, num_partitions=partitions, replication_factor=-1, config=config)
    answer = admin.create_topics([new], request_timeout=_TIMEOUT_S)[topic]
    try:
        answer.result(_TIMEOUT_S + 1)
    except KafkaException as refused:
        code = refused.args[0].code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        if code < 0 or refused.args[0].retriable():
            return None
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED and _is_there(admin, topic):
            return False  # who may write there need not be allowed to create it
        raise
    return True


def _is_there(admin: AdminClient, topic: str) -> bool:
    """True if the topic exists and the principal may see it."""
    told = admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].error
    return told is None or told.retriable()


def read(kafka: ClientSettings, timeout_s: float = _TIMEOUT_S) -> dict[str, dict[str, Any]]:
    """Job → its latest state; empty when no runner ever wrote one. timeout_s: for each answer.
    Raises KafkaException."""
    fixed = {"enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(_QUIET | kafka.librdkafka(group_id="penstock-jobs") | fixed)
    found: dict[str, dict[str, Any]] = {}
    try:
        metadata = consumer.list_topics(TOPIC, timeout=timeout_s)
        if metadata.topics[TOPIC].error is not None:
            return {}
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        while (message := consumer.poll(timeout_s)) is not None:
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return found
                if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # it is in no group
                    raise KafkaException(error)
                continue
            key, value = (message.key() or b"").decode(errors="replace"), message.value()
            if value is None:
                found.pop(key, None)
            elif (told := _object(value)) is not None:
                found[key] = told
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the states of jobs did not come"))
    finally:
        consumer.close()


def _object(value: bytes) -> dict[str, Any] | None:
    """A state written by a runner; None for anything else."""
    try:
        told = json.loads(value)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
