"""What clients and one I/O process say to each other, as a netproc would hand it on."""

from typing import NamedTuple


class Append(NamedTuple):
    token: int
    partition: int
    acks: int
    batch: bytes


class Appended(NamedTuple):
    """code: Kafka's error code."""

    token: int
    code: int
    base: int


class Read(NamedTuple):
    """waits: until there is something."""

    token: int
    partition: int
    offset: int
    waits: bool


class Found(NamedTuple):
    token: int
    code: int
    high_watermark: int
    data: bytes
