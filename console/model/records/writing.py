"""Writing records: idempotent, acks=all, in order; how many were acknowledged, and where."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from console.model.asking.failure import UNREACHABLE, Failure
from console.model.asking.link import Link
from console.model.asking.refusals import failure_of

_TOO_LARGE: Final = "MESSAGE_TOO_LARGE"
_NO_PARTITION: Final = "_UNKNOWN_PARTITION"
_AROUND: Final = 100
"""Bytes of a batch around its one record, without headers."""


@dataclass(slots=True, frozen=True)
class Written:
    """Where a record is. timestamp: in ms since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int


def write_records(
    link: Link,
    topic: str,
    records: Iterator[dict[str, Any]],
    settings: Mapping[str, object],
    *,
    keep: bool,
) -> tuple[int, list[Written]]:
    """(how many records were acknowledged, where each is). records: key, value, headers, partition
    of each. settings: of the producer, with `_` for `.`. keep: say where they are. Raises Failure
    for the first that was not acknowledged; nothing more is sent then."""
    from confluent_kafka import KafkaException

    producer = link.producer(
        linger_ms=5, message_timeout_ms=round(link.timeout_s * 1000), **settings
    )
    sent = _Sent(keep=keep)
    try:
        for number, record in enumerate(records, 1):
            heard = partial(sent.delivered, number) if "partition" in record else sent.acknowledged
            while True:
                try:
                    producer.produce(topic, on_delivery=heard, **record)
                    break
                except BufferError:  # as much is on its way as may be
                    producer.poll(0.1)
                except KafkaException as refused:
                    sent.refuse(refused.args[0], number, record.get("partition", -1))
                    break
            producer.poll(0)
            if sent.failure:
                break
    finally:
        left = producer.flush(link.timeout_s + 1)
    if left:
        late = f"{left} records were not acknowledged in time"
        sent.failure = sent.failure or Failure(late, code=UNREACHABLE, name="_TIMED_OUT")
    if sent.failure:
        if sent.failure.name == _TOO_LARGE:
            sent.failure.hint = _smaller(link, topic, sent.refused_bytes) or sent.failure.hint
        if sent.failure.name == _NO_PARTITION and sent.refused_number:
            raise _no_partition(link, topic, sent.refused_number, sent.refused_partition)
        raise link.explained(sent.failure)
    return sent.count, sent.places


def _smaller(link: Link, topic: str, size: int) -> str:
    """The remedy where a record of so many bytes was refused: by itself, or for others in the same
    batch. "" where the topic's limit is unknown.
    """
    from console.model.asking import configs

    try:
        target = configs.Target(configs.TOPIC, topic)
        (limit,) = configs.settings(link, target, ("max.message.bytes",))
        most = int(limit.value or "")
    except (Failure, ValueError):
        return ""
    more = f"penstock config set max.message.bytes=BYTES -t {topic}"
    if size + _AROUND > most:
        return f"it has {size:,} bytes and {topic} takes {most:,} (max.message.bytes): {more}"
    return (
        f"it has {size:,} bytes and would fit, its batch does not: {topic} takes {most:,}"
        f" (max.message.bytes) for a whole one; -X batch.size={most}, or {more}"
    )


def _no_partition(link: Link, topic: str, number: int, partition: int) -> Failure:
    """The failure of a record that names a partition which its topic does not have."""
    from console.model.topics import topics

    (seen,) = topics.described(link, [topic])
    count = seen.partition_count
    has = "partition 0 alone" if count == 1 else f"the partitions 0 to {count - 1}"
    return Failure(
        f"record {number} is for partition {partition}, and {topic} has {has}",
        'leave the partition out (-p, or "partition" in the JSON), or penstock topic'
        f" add-partitions {topic} --to {partition + 1}",
        name=_NO_PARTITION,
    )


class _Sent:
    """The acknowledged records, and the first failure; refused_bytes: of key and value of that one;
    refused_number, refused_partition: which record that was, where it named a partition.
    """

    def __init__(self, *, keep: bool) -> None:
        self.places: list[Written] = []
        self.count = 0
        self.failure: Failure | None = None
        self.refused_bytes = 0
        self.refused_number, self.refused_partition = 0, -1
        self._keep = keep

    def delivered(self, number: int, error: Any, message: Any) -> None:
        """number: of the record, from 1 on; it named a partition."""
        if error and self.failure is None:
            self.refuse(error, number, message.partition())
        self.acknowledged(error, message)

    def refuse(self, error: Any, number: int, partition: int) -> None:
        """A record was not taken. number: from 1 on."""
        self.failure = failure_of(error)
        self.refused_number, self.refused_partition = number, partition

    def acknowledged(self, error: Any, message: Any) -> None:
        """A record is written, or is not."""
        if error:
            self.failure = self.failure or failure_of(error)
            size = len(message.key() or b"") + len(message.value() or b"")
            self.refused_bytes = self.refused_bytes or size
            return
        self.count += 1
        if self._keep:
            stamp = message.timestamp()[1]
            place = Written(message.topic(), message.partition(), message.offset(), stamp)
            self.places.append(place)
