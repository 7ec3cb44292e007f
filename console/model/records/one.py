"""One record, whole: what a search has cut, and what is known of the batch that it lies in."""

import time
from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link, asking, is_passing
from console.model.asking.refusals import failure_of, no_answer
from console.model.records.fetching import damaged
from console.model.records.found import whole
from console.model.records.reading import Record

_FETCH: Final = (1, 12)
"""API key and version: the last one that goes by names of topics; Apache Kafka 4 has it."""
_MOST: Final = 1 << 20
_TYPES: Final = {1: "CreateTime", 2: "LogAppendTime"}


@dataclass(slots=True, frozen=True)
class Batch:
    """The batch that a record lies in. size: bytes in the log, compressed. producer_id: None when
    no idempotent producer wrote it. first: its first offset. records: how many it was written
    with."""

    size: int
    records: int
    first: int
    compression: str
    producer_id: int | None
    producer_epoch: int | None
    is_transactional: bool


@dataclass(slots=True, frozen=True)
class Whole:
    """record; timestamp_type: Kafka's name, "" when it has no timestamp. leader_epoch: None when
    the broker does not say. batch: None where it cannot be asked for, over SASL for example."""

    record: Record
    timestamp_type: str
    leader_epoch: int | None
    batch: Batch | None


def one(link: Link, topic: str, partition: int, offset: int) -> Whole:
    """The record at an offset, also of a transaction that is open or was aborted. Raises Failure
    when there is none: it has expired, was compacted, or is a mark of a transaction."""
    with asking(link):
        message = _message(link, topic, partition, offset)
    kind, _ = message.timestamp()
    return Whole(
        whole(message), _TYPES.get(kind, ""), message.leader_epoch(),
        _batch(link, topic, partition, offset),
    )  # fmt: skip


def _message(link: Link, topic: str, partition: int, offset: int) -> Any:
    from confluent_kafka import KafkaError, TopicPartition

    consumer = link.consumer(
        enable_partition_eof=True, isolation_level="read_uncommitted",
        fetch_message_max_bytes=1 << 16, queued_min_messages=1, fetch_wait_max_ms=50,
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        until_s = time.monotonic() + link.timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            message = consumer.poll(left_s)
            error = message.error() if message is not None else None
            if message is None:
                break
            if error is None:
                if message.offset() == offset:
                    return message
                raise _none(topic, partition, offset, f"the next one is {message.offset()}")
            if error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                raise _none(topic, partition, offset, "it has expired, or is still to come")
            if not is_passing(error):
                raise damaged(failure_of(error), message)
    finally:
        consumer.close()
    raise no_answer(link.bootstrap)


def _none(topic: str, partition: int, offset: int, why: str) -> Failure:
    return Failure(
        f"{topic} partition {partition} has no record at offset {offset}: {why}",
        "compaction takes records away, and marks of transactions are no records",
        name="NO_RECORD",
    )


def _batch(link: Link, topic: str, partition: int, offset: int) -> Batch | None:
    """The batch of a record; None when it cannot be read, because it is extra detail that must not
    fail the record.
    """
    from appliance.base.errors import PeerError
    from appliance.wire.batch_header import HEADER_SIZE, read_header
    from appliance.wire.compression import NAMES
    from console.model.asking.plain_request import ask_server

    if not link.is_asked:
        return None
    wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1}
    values = {
        "max_wait": 50, "min_bytes": 1, "max_bytes": _MOST, "forgotten_topics_data": [],
        "topics": [{"topic": topic, "partitions": [wanted]}],
    }  # fmt: skip
    try:
        (found,) = ask_server(link, *_FETCH, values).responses
        (part,) = found.partitions
        if part.error_code or part.records is None or len(part.records) < HEADER_SIZE:
            return None
        head = read_header(part.records)
        if not head.base_offset <= offset <= head.last_offset:
            return None
        codec = NAMES[head.codec] if head.codec < len(NAMES) else str(head.codec)
    except (Failure, PeerError, ValueError):
        return None
    has_producer = head.producer_id >= 0
    return Batch(
        head.size, head.record_count, head.base_offset, codec,
        head.producer_id if has_producer else None,
        head.producer_epoch if has_producer else None,
        head.is_transactional,
    )  # fmt: skip
