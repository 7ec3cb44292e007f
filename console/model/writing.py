"""Writing records: idempotent, acks=all, in order; how many were acknowledged, and where."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.model.failure import UNREACHABLE, Failure
from console.model.link import Link
from console.model.refusals import failure_of

_TOO_LARGE: Final = "MESSAGE_TOO_LARGE"
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
    producer = link.producer(
        linger_ms=5, message_timeout_ms=round(link.timeout_s * 1000), **settings
    )
    sent = _Sent(keep=keep)
    try:
        for record in records:
            while True:
                try:
                    producer.produce(topic, on_delivery=sent.delivered, **record)
                    break
                except BufferError:  # as much is on its way as may be
                    producer.poll(0.1)
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
        raise link.explained(sent.failure)
    return sent.count, sent.places


def _smaller(link: Link, topic: str, size: int) -> str:
    """The remedy where a record of so many bytes was refused: by itself, or for others in the same
    batch. "" where the topic's limit is unknown.
    """
    from console.model import configs

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


class _Sent:
    """The acknowledged records, and the first failure; refused_bytes: of key and value of that
    one.
    """

    def __init__(self, *, keep: bool) -> None:
        self.places: list[Written] = []
        self.count = 0
        self.failure: Failure | None = None
        self.refused_bytes = 0
        self._keep = keep

    def delivered(self, error: Any, message: Any) -> None:
        if error:
            if self.failure is None:
                self.failure = failure_of(error)
                self.refused_bytes = len(message.key() or b"") + len(message.value() or b"")
            return
        self.count += 1
        if self._keep:
            stamp = message.timestamp()[1]
            place = Written(message.topic(), message.partition(), message.offset(), stamp)
            self.places.append(place)
