"""A found record in short: enough for a line of a table. The record itself is read again when it is
shown whole (`one.py`), so a thousand of a megabyte each cost nothing.
"""

from dataclasses import dataclass
from typing import Any, Final

from console.model.records.reading import Record
from console.model.records.scan import headers_of

KEY_KEPT: Final = 256
VALUE_KEPT: Final = 2048


@dataclass(slots=True, frozen=True)
class Found:
    """A record's place and its first bytes. timestamp: in ms since 1970, None when it has none.
    key, value: cut; None for null. key_size, value_size: whole, -1 for null. headers: how many."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    key_size: int
    value_size: int
    headers: int

    @property
    def place_name(self) -> str:
        """`3:47`: what the seek box takes."""
        return f"{self.partition}:{self.offset}"

    @property
    def order(self) -> tuple[int, int, int]:
        """By time, then by place."""
        return -1 if self.timestamp is None else self.timestamp, self.partition, self.offset


def found(message: Any) -> Found:
    """Makes a Found of a message of confluent-kafka."""
    kind, timestamp = message.timestamp()
    key, value = message.key(), message.value()
    return Found(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if kind else None,
        None if key is None else key[:KEY_KEPT],
        None if value is None else value[:VALUE_KEPT],
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        len(headers_of(message)),
    )


def whole(message: Any) -> Record:
    """All of it."""
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if kind else None,
        message.key(),
        message.value(),
        headers_of(message),
    )
