"""The loops of `penstock consume`: print what arrives, until the end of what there is to read."""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from appliance.cli.link import failure_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_AT_ONCE: Final = 1000
_WAIT_S: Final = 0.2

Key = tuple[str, int]
Show = Callable[[Any], bytes]
Stops = dict[Key, int]
"""Partition → the offset before which to stop."""


def read_assigned(
    consumer: "Consumer",
    show: Show,
    unread: set[Key],
    stops: Stops,
    exit_at_end: bool,
    count: int | None,
) -> int:
    """Print what is in the partitions of `unread`: how many records were printed. Raises
    Failure."""
    shown = 0
    out = sys.stdout.buffer
    while unread:
        for key, message in _arrived(consumer, count, shown):
            if message is None:
                if exit_at_end and key not in stops:
                    unread.discard(key)
                continue
            offset = int(message.offset() or 0)
            stop = stops.get(key)
            if stop is None or offset < stop:
                out.write(show(message))
                shown += 1
            if stop is not None and offset >= stop - 1:
                unread.discard(key)
            if shown == count:
                unread.clear()
        out.flush()
    return shown


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


def read_as_member(
    consumer: "Consumer", topics: list[str], show: Show, exit_at_end: bool, count: int | None
) -> int:
    """Print what the group gives; what was printed, and nothing else, is committed when the
    consumer is closed, or every few seconds. How many records were printed. Raises Failure."""
    share = Share()
    consumer.subscribe(topics, on_assign=share.given, on_revoke=share.taken, on_lost=share.taken)
    shown = 0
    out = sys.stdout.buffer
    while shown != count and not (exit_at_end and share.at_the_end):
        printed: dict[Key, Message] = {}
        for key, message in _arrived(consumer, count, shown):
            if message is None:
                share.read.add(key)
                continue
            share.read.discard(key)
            out.write(show(message))
            printed[key] = message
            shown += 1
        out.flush()
        for key, message in printed.items():
            if key in share.mine:  # else another member reads it again
                consumer.store_offsets(message)
    return shown


def _arrived(
    consumer: "Consumer", count: int | None, shown: int
) -> "Iterator[tuple[Key, Message | None]]":
    """Records as they come, None for the end of a partition; at least one unless nothing arrives
    for a while. Raises Failure."""
    from confluent_kafka import KafkaError

    for message in _next(consumer, min(_AT_ONCE, (count or _AT_ONCE + shown) - shown)):
        key = str(message.topic()), int(message.partition() or 0)
        error = message.error()
        if error is None:
            yield key, message
        elif error.code() == KafkaError._PARTITION_EOF:
            yield key, None
        elif not error.retriable() and error.code() != KafkaError._ALL_BROKERS_DOWN:
            raise _failure(error, message)


def _failure(error: "KafkaError", message: "Message") -> Exception:
    from confluent_kafka import KafkaError

    failure = failure_of(error)
    if error.code() == KafkaError._BAD_MSG:
        failure.message = f"{message.topic()} partition {message.partition()}: {failure.message}"
        failure.hint = (
            "the batch is damaged: -o OFFSET goes on behind it, -X check.crcs=false shows it as it"
            " is, penstock log dump FOLDER which one it is"
        )
    return failure


def _next(consumer: "Consumer", most: int) -> "list[Message]":
    first = consumer.poll(_WAIT_S)
    if first is None:
        return []
    return [first, *(consumer.consume(most - 1, 0) if most > 1 else ())]
