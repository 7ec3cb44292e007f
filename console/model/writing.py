"""Writing records: idempotent, acks=all, in order; how many were acknowledged, and where."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from console.model.failure import UNREACHABLE, Failure
from console.model.link import Link
from console.model.refusals import failure_of


@dataclass(slots=True, frozen=True)
class Written:
    """Where a record is. timestamp: in ms since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int


def write(
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
        raise link.explained(sent.failure)
    return sent.count, sent.places


class _Sent:
    """What was acknowledged, and the first failure."""

    def __init__(self, *, keep: bool) -> None:
        self.places: list[Written] = []
        self.count = 0
        self.failure: Failure | None = None
        self._keep = keep

    def delivered(self, error: Any, message: Any) -> None:
        if error:
            self.failure = self.failure or failure_of(error)
            return
        self.count += 1
        if self._keep:
            stamp = message.timestamp()[1]
            place = Written(message.topic(), message.partition(), message.offset(), stamp)
            self.places.append(place)
