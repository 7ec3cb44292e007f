"""Reading records: by offsets and times, which commits nothing, or as a member of a group.

Both give lists of records as they arrive. What was given is taken as used when the next list is
asked for: a member commits it then, or when the reading is closed.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link, is_passing
from console.model.asking.refusals import failure_of, no_answer
from console.model.groups.offsets import END, START, Place, bounds, partitions_of
from console.model.records.absence import Absence
from console.model.records.fetching import damaged
from console.model.records.filters import Filter
from console.model.records.last_records import COUNTED_MOST, find_starts
from console.model.records.scan import headers_of
from console.model.records.seeking import Key, Seek, known_partitions, places

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_AT_ONCE: Final = 1000
_WAIT_S: Final = 0.2
_EXPIRED: Final = ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")


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
    remark: Callable[[str], object],
) -> Reading:
    """Records that a filter keeps, from where `seek` says on. count: how many at most. Without an
    end it never ends. remark: takes a sentence when records expired before they were read, when no
    broker answers, and when one does again. Raises Failure."""
    assigned, stops, highs = _assignment(link, topics, partitions, seek, keep)
    if count == 0 or not assigned:
        return
    ends = exit_at_end or seek.has_stop
    # The end of a partition is told by an empty answer, which the broker holds back for so long.
    patience_ms = 20 if exit_at_end else 500
    absence = Absence(link.bootstrap, remark)
    settings = {"enable_partition_eof": True, "fetch_wait_max_ms": patience_ms}
    consumer = link.consumer(on_error=absence.on_error, **settings)
    unread = {(one.topic, one.partition): one.offset for one in assigned}
    shown = 0
    try:
        consumer.assign(assigned)
        while unread:
            wanted: list[Record] = []
            for key, message in _arrived(consumer, count, shown, grouped=False):
                absence.on_message()
                stop = stops.get(key)
                if isinstance(message, Failure):
                    yield wanted
                    wanted = []
                    remark(_passed_over(link, key, unread, message))
                    if stop is not None and unread[key] >= stop:
                        del unread[key]
                    consumer.assign(_at(unread))
                    continue
                if isinstance(message, int):
                    # Marks of transactions, and what compaction left, may lie before the end.
                    known = highs[key]
                    stop = _end(link, consumer, key, message, known) if exit_at_end else stop
                    if ends if stop is None else message >= stop:
                        unread.pop(key, None)
                    continue
                if key in unread:
                    unread[key] = message.offset + 1
                if (stop is None or message.offset < stop) and _keeps(keep, message):
                    wanted.append(message)
                    shown += 1
                if stop is not None and message.offset >= stop - 1:
                    unread.pop(key, None)
                if shown == count:
                    unread.clear()
                    break
            yield wanted
    finally:
        consumer.close()


def _end(link: Link, consumer: "Consumer", key: Key, told: int, known: int) -> int:
    """Where this consumer's records end. told: by a fetch; known: from when it began. A new leader
    answers a fetch with an end before it knows how far its predecessor had come; who asks it for
    the end is answered when it does (KIP-207). Raises Failure."""
    from confluent_kafka import KafkaException, TopicPartition

    if told >= known:
        return known
    try:
        found = consumer.get_watermark_offsets(TopicPartition(*key), link.timeout_s)
    except KafkaException as refused:
        raise link.explained(failure_of(refused.args[0])) from None
    if found is None:
        raise no_answer(link.bootstrap)
    return int(found[1])


def _passed_over(link: Link, key: Key, unread: dict[Key, int], failure: Failure) -> str:
    """The note about records deleted before they were read: the partition continues at the first
    that exists. Raises the failure when it is another one.
    """
    if failure.name not in _EXPIRED or key not in unread:
        raise failure
    wanted = unread[key]
    (edge,) = bounds(link, _at({key: wanted})).values()
    if edge.low <= wanted:
        raise failure
    unread[key] = edge.low
    return (
        f"{key[0]} partition {key[1]}: offsets {wanted} to {edge.low - 1} went away before they"
        f" were read; on at {edge.low}"
    )


def _at(offsets: dict[Key, int]) -> "list[TopicPartition]":
    from confluent_kafka import TopicPartition

    return [TopicPartition(*key, offset) for key, offset in offsets.items()]


def _keeps(keep: Filter, one: Record) -> bool:
    return not keep or keep.keeps(one.key, one.value, one.headers)


def read_as_member(
    link: Link,
    group: str,
    topics: list[str],
    first: Place,
    *,
    exit_at_end: bool,
    count: int | None,
    remark: Callable[[str], object],
) -> Reading:
    """Reads what the group assigns to this member. first: where the group begins in partitions
    without a committed offset. remark: takes a sentence when no broker answers, and when one does
    again. Raises Failure.
    """
    if first.number or first.kind not in (START, END):
        raise usage(
            "-o start or -o end is where a group begins in partitions that it has not read yet",
            "penstock group seek moves it to any offset or time",
        )
    if count == 0 or not topics:
        return
    partitions_of(link, topics)  # a topic that is not there would be waited for
    absence = Absence(link.bootstrap, remark)
    consumer = link.consumer(
        on_error=absence.on_error,
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
            after: dict[Key, int] = {}
            for key, message in _arrived(consumer, count, shown, grouped=True):
                absence.on_message()
                if isinstance(message, Failure):
                    yield wanted
                    _used(consumer, share, after)
                    raise message
                if isinstance(message, int):
                    share.read.add(key)
                    after[key] = message
                    continue
                share.read.discard(key)
                after[key] = message.offset + 1
                wanted.append(message)
                shown += 1
            yield wanted
            _used(consumer, share, after)
    finally:
        consumer.close()


def _used(consumer: "Consumer", share: "Share", after: dict[Key, int]) -> None:
    """To be committed: the next offset of partitions, also of those that were found empty, as with
    Kafka's own consumer: what comes later is the group's lag."""
    from confluent_kafka import TopicPartition

    # What went to another member is read again by it.
    mine = [TopicPartition(*key, at) for key, at in after.items() if key in share.mine]
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
        """True if nothing is left to read, also for a member without partitions."""
        return self.joined and self.read >= self.mine


def _assignment(
    link: Link, topics: list[str], wanted: tuple[int, ...], seek: Seek, keep: Filter
) -> "tuple[list[TopicPartition], dict[Key, int], dict[Key, int]]":
    """(partitions with the offset to begin at, the offset before which to stop in each, where each
    ends)"""
    found = known_partitions(link, topics, wanted, seek)
    found = [one for one in found if keep.partition(one.partition)]
    starts, stops, known = places(link, found, seek)
    from_end = {(one.topic, one.partition): seek.of(one.partition) for one in found}
    counts = {
        key: -said.first.number
        for key, said in from_end.items()
        if said and said.first.kind == END and 0 < -said.first.number <= COUNTED_MOST
    }
    starts |= find_starts(link, counts, known)
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
    return chosen, stops, {key: edge.high for key, edge in known.items()}


def _arrived(
    consumer: "Consumer", count: int | None, shown: int, *, grouped: bool
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
        elif not is_passing(error, grouped=grouped):
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
