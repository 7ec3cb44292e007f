"""A batch of what the appliance itself has to say: plain records of one time, not compressed.

`build(records, timestamp)` gives the bytes of `records.build_batch` for the same records, which the
tests hold it to. Callers: the coordinators, for what they decided in a turn, of themselves or
within a client's transaction, and `markers`.
"""

from collections.abc import Sequence
from typing import Final

from appliance.base.crc import crc32c
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX,
    MAGIC,
    TRANSACTIONAL_BIT,
    UINT32,
)

NOBODY: Final = (-1, -1)
"""The producer of a batch that belongs to no transaction."""

_EVEN: Final = [bytes((2 * value,)) for value in range(64)]
"""ZigZag varints of small numbers that are not negative."""


def _svarint(value: int) -> bytes:
    if value < 64:
        return _EVEN[value]
    value <<= 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def build(
    records: Sequence[tuple[bytes, bytes | None]],
    timestamp: int,
    producer: tuple[int, int] = NOBODY,
    control: bool = False,
) -> bytearray:
    """One whole batch with its checksum, of (key, value or None for a tombstone); not empty.
    timestamp: ms since 1970. producer: id and epoch of whose transaction it belongs to; it has no
    sequence number then, as only its coordinator writes it. control: it holds a control record."""
    count = len(records)
    attributes = 0 if producer[0] < 0 else TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT
    assert count > 0, "a batch holds at least one record"
    out = bytearray(HEADER_SIZE)
    for delta in range(count):
        key, value = records[delta]
        head = b"\0\0" + _svarint(delta) + _svarint(len(key)) + key
        tail = b"\x01\0" if value is None else _svarint(len(value)) + value + b"\0"
        out += _svarint(len(head) + len(tail))
        out += head
        out += tail
    HEADER.pack_into(
        out,
        0,
        0,
        len(out) - LENGTH_PREFIX,
        -1,
        MAGIC,
        0,
        attributes,
        count - 1,
        timestamp,
        timestamp,
        producer[0],
        producer[1],
        -1,
        count,
    )
    UINT32.pack_into(out, CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
    return out
