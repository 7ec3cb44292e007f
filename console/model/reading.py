"""Reading records: by offsets and times, which commits nothing, or as a member of a group.

Both give lists of records as they arrive. What was given is taken as used when the next list is
asked for: a member commits it then, or when the reading is closed.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from console.model.failure import Failure, usage
from console.model.link import Link
from console.model.offsets import END, START, Place, partitions_of
from console.model.records.fetching import damaged
from console.model.records.filters import Filter
from console.model.records.scan import headers_of
from console.model.records.seeking import Key, Seek, known_partitions, places
from console.model.refusals import failure_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_AT_ONCE: Final = 1000
_WAIT_S: Final = 0.2


@dataclass(slots=True)
class Record:
    """One record. timestamp: in ms since 1970; None when it has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


Reading = Generator[list[Record], None, None]


def read(
    link: Link,
    topics: list[str],
    partitions: tuple[int, ...],
    seek: Seek,
    keep: Filter,
    *,
    exit_at_end: bool,
    count: int | None,
) -> Reading:
    """Records that a filter keeps, from where `seek` says on. count: how many at most. Without an
    end it never ends. Raises Failure."""
    assigned, stops = _assignment(link, topics, partitions, seek, keep)
    if count == 0 or not assigned:
        return
    ends = exit_at_end or seek.has_stop
    # The end of a partition is told by an empty answer, which the broker holds back for so long.
    patience_ms = 20 if exit_at_end else 500
    consumer = link.consumer(enable_partition_eof=True, fetch_wait_max_ms=patience_ms)
    unread = {(one.topic, one.partition) for one in assigned}
    shown = 0
    try:
        consumer.assign(assigned)
        while unread:
            wanted: list[Record] = []
            for key, message in _arrived(consumer, count, shown):
                if isinstance(message, Failure):
                    yield wanted
                    raise message
                stop = stops.get(key)
                if isinstance(message, int):
                    # Marks of transactions, and what compaction left, may lie before the end.
                    if exit_at_end or (ends if stop is None else message >= stop):
                        unread.discard(key)
                    continue
                if (stop is None or message.offset < stop) and _keeps(keep, message):
                    wanted.append(message)
                    shown += 1
                if stop is not None and message.offset >= stop - 1:
                    unread.discard(key)
                if shown == count:
                    unread.clear()
                    break
            yield wanted
    finally:
        consumer.close()


def _keeps(keep: Filter, one: Record) -> bool:
    return not keep or keep.keeps(one.key, one.value, one.headers)


def read_as_member(
    link: Link, group: str, topics: list[str], first: Place, *, exit_at_end: bool, count: int | None
) -> Reading:
    """What the group gives this member. first: where the group begins in partitions that it has not
    read yet. Raises Failure."""
    if first.number or first.kind not in (START, END):
        raise usage(
            "-o start or -o end is where a group begins in partitions that it has not read yet",
            "penstock group seek moves it to any offset or time",
        )
    if count == 0 or not topics:
        return
    partitions_of(link, topics)  # a topic that is not there would be waited for
    consumer = link.consumer(
        group_id=group,
        enable_auto_commit=True,
        enable_auto_offset_store=False,
        auto_offset_reset="earliest" if first.kind == START else "latest",
        enable_partition_eof=True,
    )
    share = Share()
    shown = 0
    try:
        consumer.subscribe(
            topics, on_assign=share.given, on_revoke=share.taken, on_lost=share.taken
        )
        while shown != count and not (exit_at_end and share.at_the_end):
            wanted: list[Record] = []
            for key, message in _arrived(consumer, count, shown):
                if isinstance(message, Failure):
                    yield wanted
                    _used(consumer, share, wanted)
                    raise message
                if isinstance(message, int):
                    share.read.add(key)
                    continue
                share.read.discard(key)
                wanted.append(message)
                shown += 1
            yield wanted
            _used(consumer, share, wanted)
    finally:
        consumer.close()


def _used(consumer: "Consumer", share: "Share", records: list[Record]) -> None:
    from confluent_kafka import TopicPartition

    last = {(one.topic, one.partition): one.offset for one in records}
    # What went to another member is read again by it.
    mine = [TopicPartition(*key, at + 1) for key, at in last.items() if key in share.mine]
    if mine:
        consumer.store_offsets(offsets=mine)


class Share:
    """The partitions that a member of a group has, and those of them that it has read to their
    end."""

    def __init__(self) -> None:
        self.mine: set[Key] = set()
        self.read: set[Key] = set()
        self.joined = False

    def given(self, _: "Consumer", partitions: "list[TopicPartition]") -> None:
        """The group gives partitions."""
        self.joined = True
        self.mine |= {(one.topic, one.partition) for one in partitions}

    def taken(self, _: "Consumer", partitions: "list[TopicPartition]") -> None:
        """The group takes partitions back."""
        gone = {(one.topic, one.partition) for one in partitions}
        self.mine -= gone
        self.read -= gone

    @property
    def at_the_end(self) -> bool:
        """Whether there is nothing more to read; so for a member that got no partition."""
        return self.joined and self.read >= self.mine


def _assignment(
    link: Link, topics: list[str], wanted: tuple[int, ...], seek: Seek, keep: Filter
) -> "tuple[list[TopicPartition], dict[Key, int]]":
    """(partitions with the offset to begin at, the offset before which to stop in each)"""
    found = known_partitions(link, topics, wanted, seek)
    found = [one for one in found if keep.partition(one.partition)]
    starts, stops, known = places(link, found, seek)
    chosen = []
    for one in found:
        key = one.topic, one.partition
        if not known[key].low <= starts[key] <= known[key].high:
            raise Failure(
                f"{one.topic} partition {one.partition} has no offset {starts[key]}",
                f"it goes from {known[key].low} to {known[key].high}",
                name="OFFSET_OUT_OF_RANGE",
                kafka_code=1,
            )
        one.offset = starts[key]
        if key not in stops or stops[key] > starts[key]:
            chosen.append(one)
    return chosen, stops


def _arrived(
    consumer: "Consumer", count: int | None, shown: int
) -> "Iterator[tuple[Key, Record | int | Failure]]":
    """Records as they come, the next offset at the end of a partition, a Failure as the last; at
    least one unless nothing arrives for a while."""
    from confluent_kafka import KafkaError

    for message in _next(consumer, min(_AT_ONCE, (count or _AT_ONCE + shown) - shown)):
        error = message.error()
        key = str(message.topic()), int(message.partition() or 0)
        if error is None:
            yield key, _record(key, message)
        elif error.code() == KafkaError._PARTITION_EOF:
            yield key, int(message.offset() or 0)
        elif not error.retriable() and error.code() != KafkaError._ALL_BROKERS_DOWN:
            yield key, damaged(failure_of(error), message)
            return


def _record(key: Key, message: Any) -> Record:
    kind, timestamp = message.timestamp()
    return Record(
        *key,
        message.offset(),
        timestamp if kind else None,
        message.key(),
        message.value(),
        headers_of(message),
    )


def _next(consumer: "Consumer", most: int) -> "list[Message]":
    first = consumer.poll(_WAIT_S)
    if first is None:
        return []
    return [first, *(consumer.consume(most - 1, 0) if most > 1 else ())]
