"""Where the last N records of a partition begin. Offsets do not tell: markers of transactions,
records of aborted ones and what compaction removed have offsets too, so the records are counted.
"""

import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from console.model.asking.link import Link, is_passing
from console.model.groups.offsets import Bounds

if TYPE_CHECKING:
    from confluent_kafka import Consumer

COUNTED_MOST: Final = 10_000
"""More than these are taken as offsets: counting reads them once more."""
_AT_ONCE: Final = 1000
_WAIT_S: Final = 0.2
Key = tuple[str, int]


def find_starts(
    link: Link, counts: Mapping[Key, int], known: Mapping[Key, Bounds]
) -> dict[Key, int]:
    """Partition → the offset of the first of its last `counts` records, or of its first record when
    there are fewer."""
    starts = {key: max(known[key].low, known[key].high - n) for key, n in counts.items()}
    short = {key for key in counts if known[key].low < starts[key]}
    if not short:
        return starts
    consumer = link.consumer(enable_partition_eof=True, fetch_wait_max_ms=20)
    try:
        while short:
            seen = _read_offsets(link, consumer, {key: starts[key] for key in short}, counts, known)
            for key, offsets in seen.items():
                edge = known[key]
                if offsets is None or len(offsets) == counts[key] or starts[key] == edge.low:
                    starts[key] = offsets[0] if offsets else starts[key]
                    short.discard(key)
                else:
                    starts[key] = max(edge.low, edge.high - 2 * (edge.high - starts[key]))
    finally:
        consumer.close()
    return starts


def _read_offsets(
    link: Link,
    consumer: "Consumer",
    starts: Mapping[Key, int],
    counts: Mapping[Key, int],
    known: Mapping[Key, Bounds],
) -> dict[Key, "deque[int] | None"]:
    """Partition → offsets of its last records from a start on, `counts` at most; None for one that
    cannot be read, or not in time: reading itself tells why."""
    from confluent_kafka import KafkaError, TopicPartition

    found: dict[Key, deque[int] | None] = {key: deque(maxlen=counts[key]) for key in starts}
    unread = set(starts)
    consumer.assign([TopicPartition(*key, at) for key, at in starts.items()])
    end = time.monotonic() + link.timeout_s
    while unread:
        messages = consumer.consume(_AT_ONCE, _WAIT_S)
        if messages:
            end = time.monotonic() + link.timeout_s
        elif time.monotonic() > end:
            return found | dict.fromkeys(unread)
        for message in messages:
            key = str(message.topic()), int(message.partition() or 0)
            error, offsets = message.error(), found.get(key)
            if error is None and offsets is not None and key in unread:
                offset = int(message.offset() or 0)
                if offset < known[key].high:
                    offsets.append(offset)
                if offset >= known[key].high - 1:
                    unread.discard(key)
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                unread.discard(key)
            elif error is not None and not is_passing(error) and key in unread:
                found[key] = None
                unread.discard(key)
    return found
