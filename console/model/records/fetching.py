"""Fetching for a search, in the thread that calls: bounded, and without a word to any group.

A search over a busy broker must not push aside what others read, nor fill our memory: so few
megabytes are fetched ahead, whatever the broker's and the client's own limits are.
"""

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link, asking, is_passing
from console.model.asking.refusals import failure_of
from console.model.groups.offsets import bounds
from console.model.records.scan import ENDLESS, Scan, T
from console.model.records.seeking import Key, Span, known_partitions, parse_seek, spans

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_AT_ONCE: Final = 500
"""Messages handled in one go: some thousand objects at most, a millisecond of Python."""
_WAIT_S: Final = 0.1
_AHEAD: Final = {
    "fetch_max_bytes": 4 << 20,
    "fetch_message_max_bytes": 1 << 20,
    "queued_min_messages": 10_000,
    "queued_max_messages_kbytes": 8 << 10,
    "fetch_queue_backoff_ms": 5,
    "fetch_wait_max_ms": 100,
    "enable_partition_eof": True,
}
"""What goes ahead of us. A batch that is larger comes all the same, alone."""
BEHIND: Final = 100_000
"""Who follows the end and is so many records behind goes on at the end."""


def fetch(
    link: Link,
    scan: Scan[T],
    is_over: threading.Event,
    tell: Callable[[list[T]], object],
    skipped: Callable[[int], object] | None = None,
) -> None:
    """Search on until everything was looked at, the search is full or `is_over` is set. tell: takes
    what was found since the last time, perhaps nothing. skipped: given for a search that follows
    the end: takes how many offsets were passed over because they came too fast. Raises Failure; the
    search can go on from where it is."""
    with asking(link):
        while not is_over.is_set() and (places := scan.round()):
            _clamp(link, scan, list(places))
            consumer = link.consumer(on_error=None, **_AHEAD)
            try:
                _round(consumer, scan, scan.round(), is_over, tell, skipped)
            finally:
                consumer.close()


def _clamp(link: Link, scan: Scan[Any], keys: list[Key]) -> None:
    """Skips records that expired after the plan was made or while the search was paused."""
    from confluent_kafka import TopicPartition

    known = bounds(link, [TopicPartition(*key) for key in keys])
    for key, edge in known.items():
        scan.edges(key, edge.low, edge.high)


def _round(
    consumer: "Consumer",
    scan: Scan[T],
    places: dict[Key, int],
    is_over: threading.Event,
    tell: Callable[[list[T]], object],
    skipped: Callable[[int], object] | None,
) -> None:
    from confluent_kafka import TopicPartition

    fetched = {key: TopicPartition(*key, at) for key, at in places.items()}
    if not fetched:
        return
    consumer.assign(list(fetched.values()))
    while fetched and not is_over.is_set():
        messages = []
        for message, failure in _arrived(consumer):
            if failure is None:
                messages.append(message)
                continue
            tell(scan.match_messages(messages))
            messages = []
            key = message.topic(), message.partition()
            if failure.name == "_PARTITION_EOF":
                scan.ended(key, message.offset())
            elif failure.name in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
                return  # it has just expired: the next round begins at what is there
            else:
                raise failure
        tell(scan.match_messages(messages))
        idle = [key for key in fetched if not scan.wants(key)]
        if idle:
            consumer.pause([fetched.pop(key) for key in idle])
        if skipped is not None:
            skipped(_keep_up(consumer, scan, fetched))


def _keep_up(consumer: "Consumer", scan: Scan[Any], fetched: "dict[Key, TopicPartition]") -> int:
    from confluent_kafka import TopicPartition

    jumped = 0
    for key, at in scan.positions.items():
        if key not in fetched:
            continue
        edge = consumer.get_watermark_offsets(TopicPartition(*key), cached=True)
        if edge and edge[1] - at > BEHIND:
            jumped += scan.skip(key, edge[1])
            consumer.seek(TopicPartition(*key, edge[1]))
    return jumped


def _arrived(consumer: "Consumer") -> Iterator[tuple[Any, Failure | None]]:
    """Messages as they come; one with a Failure says something about its partition, or that the
    whole cannot go on. What the client mends by itself is left out."""
    from confluent_kafka import KafkaError

    first = consumer.poll(_WAIT_S)
    if first is None:
        return
    for message in [first, *consumer.consume(_AT_ONCE - 1, 0)]:
        error = message.error()
        if error is None:
            yield message, None
        elif error.code() in (
            KafkaError._PARTITION_EOF,
            KafkaError._AUTO_OFFSET_RESET,
        ) or not is_passing(error):
            yield message, damaged(failure_of(error), message)


def damaged(failure: Failure, message: Any) -> Failure:
    """The failure of a fetch, with what to do when that is a damaged batch."""
    if failure.name == "_BAD_MSG":
        failure.message = f"{message.topic()} partition {message.partition()}: {failure.message}"
        failure.hint = (
            "the batch is damaged: -o OFFSET continues after it, -X check.crcs=false shows it as it"
            " is, penstock log dump FOLDER says which one it is"
        )
    return failure


def planned(
    link: Link, topic: str, seek: str, now_ms: int, *, endless: bool = False
) -> dict[Key, Span]:
    """The spans of a seek in a topic now. endless: it follows new records. Raises Failure."""
    said = parse_seek(seek, now_ms)
    with asking(link):
        found = spans(link, known_partitions(link, [topic], (), said), said)
    if not endless:
        return found
    return {key: Span(one.first, ENDLESS, one.expired) for key, one in found.items()}
