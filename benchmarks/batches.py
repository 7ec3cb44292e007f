"""Record batches (magic 2) built once, byte by byte, so that the load generator needs no client
library.

A batch built here is valid for any broker: CRC32C over everything behind the CRC, one timestamp, no
keys, no producer id. Called by the load generator, the fault tests and the hostile tests.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

import crc32c

_FRONT: Final = Struct(">qiibI")  # base offset, length, leader epoch, magic, CRC
_REST: Final = Struct(">hiqqqhii")  # attributes … record count
OVERHEAD: Final = _FRONT.size + _REST.size
assert OVERHEAD == 61


def varint(value: int) -> bytes:
    """A signed number as zigzag base-128 (Protocol Buffers' encoding), the form records use."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def record(offset_delta: int, value: bytes | None, key: bytes | None = None) -> bytes:
    """One record without headers, timestamp delta 0."""
    body = bytearray(b"\0")
    body += varint(0) + varint(offset_delta)
    for part in (key, value):
        body += varint(-1) if part is None else varint(len(part)) + part
    body += varint(0)
    return varint(len(body)) + bytes(body)


def batch(
    values: Sequence[bytes | None],
    timestamp_ms: int,
    *,
    attributes: int = 0,
    count: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    payload: bytes | None = None,
) -> bytes:
    """A whole batch. count and payload override what the values say, for tests that lie.

    producer: id, epoch, base sequence. payload: the bytes behind the record count (compressed,
    say).
    """
    if payload is None:
        payload = b"".join(record(i, value) for i, value in enumerate(values))
    number = len(values) if count is None else count
    rest = (
        _REST.pack(attributes, number - 1, timestamp_ms, timestamp_ms, *producer, number) + payload
    )
    return _FRONT.pack(0, len(rest) + 9, -1, 2, crc32c.crc32c(rest)) + rest


def uniform(records: int, size: int, timestamp_ms: int) -> bytes:
    """A batch of equal records whose values are `size` bytes of text that compresses badly."""
    value = bytes(32 + (i * 7919) % 91 for i in range(size))
    return batch([value] * records, timestamp_ms)
