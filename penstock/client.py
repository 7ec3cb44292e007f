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
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.door import Door, NotUsable
from penstock.reach import Trouble, barred, unreachable
from penstock.tokens import completed

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.1
_READ_MS: Final = 20
"""The end of a partition is told by an empty answer, which the broker holds back for so long."""
_FOLLOW_MS: Final = 500
_AWAY: Final = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
)


class PatientProducer(Producer):
    """confluent-kafka's producer, which waits when its queue is full instead of raising."""

    def produce(self, *args: Any, **kwargs: Any) -> None:
        """As confluent-kafka's; raises no BufferError: it polls until there is room, which there
        is when records are acknowledged, or time out."""
        while True:
            try:
                return super().produce(*args, **kwargs)
            except BufferError:
                self.poll(_POLL_S)


class Connection:
    """Where the appliance is; makes clients for it. A client is refused at once, by a
    KafkaException with one sentence, when the appliance cannot be reached."""

    def __init__(self, bootstrap: str, settings: dict[str, Any]) -> None:
        self.bootstrap = bootstrap
        self._settings = settings

    def __repr__(self) -> str:
        return f"<penstock.Connection to {self.bootstrap}>"

    @contextmanager
    def producer(self, **settings: Any) -> Iterator[Producer]:
        """An idempotent producer with acks=all, which waits when more is produced than is
        acknowledged. Leaving the block waits until everything is; raises KafkaException for the
        first record that was not."""
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        base = {"enable_idempotence": True, "acks": "all", "on_delivery": delivered}
        producer = PatientProducer(self._config(**base | settings))
        yield producer
        left = producer.flush(_TIMEOUT_S)
        if left:
            failures.append(KafkaError(KafkaError._TIMED_OUT, "not acknowledged in time"))
        if failures:
            raise KafkaException(self._explained(failures[0], len(failures) - bool(left) + left))

    def consumer(self, *topics: str, offset: int = OFFSET_BEGINNING, **settings: Any) -> Consumer:
        """A consumer that is assigned every partition of `topics` from `offset` (OFFSET_BEGINNING,
        OFFSET_END, or a number). It commits nothing. Raises KafkaException for an unknown topic."""
        consumer = Consumer(
            self._config(
                **{
                    "group_id": "penstock",
                    "enable_auto_commit": False,
                    "auto_offset_reset": "error",
                    "check_crcs": True,  # librdkafka gives away damaged records otherwise
                }
                | settings
            )
        )
        if topics:
            places = [TopicPartition(name, p, offset) for name, p in self.partitions(*topics)]
            # Before it is connected it finds no offset, and looks again half a second later.
            consumer.list_topics(topics[0], timeout=_TIMEOUT_S)
            consumer.assign(places)
        return consumer

    def read(
        self, *topics: str, offset: int = OFFSET_BEGINNING, follow: bool = False
    ) -> Iterator[Message]:
        """Every record of `topics` that is there, each partition in order. follow: then wait for
        more, for ever, outages of the appliance included."""
        unread = set(self.partitions(*topics))
        consumer = self.consumer(
            *topics,
            offset=offset,
            enable_partition_eof=not follow,
            fetch_wait_max_ms=_FOLLOW_MS if follow else _READ_MS,
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
                    if not follow:
                        unread.discard((str(message.topic()), int(message.partition() or 0)))
                elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # of its group.id, which reading by `assign` does not need
                elif not error.retriable() and not (follow and error.code() in _AWAY):
                    raise KafkaException(self._explained(error))
        finally:
            consumer.close()

    def admin(self, **settings: Any) -> AdminClient:
        """For topics and settings; keep it until its answers have come."""
        return AdminClient(self._config(**settings))

    def create_topic(
        self, name: str, partitions: int = -1, *, exist_ok: bool = False, **settings: Any
    ) -> None:
        """Make a topic with so many partitions (-1: as the appliance's settings say) and settings
        of its own, with `_` for `.`: `retention_ms=60000`. Raises KafkaException; exist_ok: not for
        a topic that is there already."""
        config = {key.replace("_", "."): _text(value) for key, value in settings.items()}
        admin = self.admin()
        topic = NewTopic(name, num_partitions=partitions, config=config)
        try:
            admin.create_topics([topic], request_timeout=_TIMEOUT_S)[name].result(_TIMEOUT_S + 1)
        except KafkaException as refused:
            there = refused.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            if not (there and exist_ok):
                raise

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
        merged = {
            # What goes wrong is raised; librdkafka's log would say it once more for each attempt.
            "log_level": 0,
            "bootstrap.servers": self.bootstrap,
            **{
                # The names of callbacks, and this one, are the only ones with underscores.
                key if callable(value) or key == "log_level" else key.replace("_", "."): value
                for key, value in (self._settings | settings).items()
            },
        }
        merged = completed(merged)
        self._reach(str(merged["bootstrap.servers"]), Door(merged))
        return merged

    def _reach(self, servers: str, door: Door) -> None:
        """Raises KafkaException when none of the servers can be reached or speaks as we do, when
        one of the two does not trust the other, or when the brokers are not where they say."""
        problem = unreachable(servers)
        if problem:
            problem += "; `penstock up` starts an appliance, connect('HOST:PORT') names another one"
        elif door.can_ask:
            problem = _told(door, servers)
        if problem:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, problem))

    def _explained(self, error: KafkaError, records: int = 0) -> KafkaError:
        """The error with the reason why nothing was heard, when the appliance is away."""
        if error.code() not in _AWAY:
            return error
        text = unreachable(self.bootstrap) or error.str()
        if records:
            text = f"{records} record{'s'[: records != 1]} not acknowledged: {text}"
        return KafkaError(error.code(), text)


def _told(door: Door, servers: str) -> str:
    try:
        trouble = barred(servers, door)
    except NotUsable as wrong:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, str(wrong))) from None
    return "" if trouble is None else f"{trouble.what}{_remedy(trouble)}"


def _remedy(trouble: Trouble) -> str:
    if trouble.elsewhere:
        return "; its setting advertised.listeners says so"
    if trouble.login:
        words = [*trouble.options, "sasl.username=…", "sasl.password=…"]
        return f"; connect(..., {', '.join(map(_keyword, words))})"
    needed = ", ".join(map(_keyword, trouble.options))
    return f"; connect(..., {needed})" if needed else ""


def _keyword(option: str) -> str:
    key, _, value = option.partition("=")
    return f"{key.replace('.', '_')}={value!r}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def connect(bootstrap: str | None = None, **settings: Any) -> Connection:
    """A connection to `bootstrap`, else $PENSTOCK_BOOTSTRAP, else localhost:9092."""
    return Connection(
        bootstrap or os.environ.get("PENSTOCK_BOOTSTRAP") or DEFAULT_BOOTSTRAP, settings
    )
