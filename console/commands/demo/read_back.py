"""Everything read back through kafka-python, a second stock client. For hosts without Java."""

import time
from typing import Final

from console.commands.demo.data import TABLES, Content
from console.commands.demo.load import SILENCE_S, Advance
from console.model.asking.failure import Failure
from console.model.asking.link import Link

_BATCH: Final = 2000
_MIB: Final = 1 << 20


def read_back(link: Link, advance: Advance) -> dict[str, Content]:
    """Topic → what came back. Raises Failure when it does not come."""
    from kafka import KafkaConsumer, TopicPartition

    found = {table.topic: Content() for table in TABLES}
    consumer = KafkaConsumer(
        bootstrap_servers=link.bootstrap, group_id=None, enable_auto_commit=False,
        auto_offset_reset="earliest", max_poll_records=_BATCH,
        max_partition_fetch_bytes=_MIB,
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(table.topic, 0) for table in TABLES])
        ends = sum(consumer.end_offsets(sorted(consumer.assignment())).values())
        left, silent_since = ends, time.monotonic()
        while left > 0:
            for place, messages in consumer.poll(1000, max_records=_BATCH).items():
                content = found[place.topic]
                for message in messages:
                    content.add(message.key, message.value)
                advance(place.topic, len(messages))
                left -= len(messages)
                silent_since = time.monotonic()
            if time.monotonic() - silent_since > SILENCE_S:
                raise Failure(f"{left} of {ends} records do not come", code=3, name="_TIMED_OUT")
    finally:
        consumer.close()
    return found
