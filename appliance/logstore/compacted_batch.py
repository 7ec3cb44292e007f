"""A batch after compaction: fewer records in the same frame, or its header alone.

Invariant: base offset, last offset, producer fields, codec, leader epoch and the times of the
records stay as they were; a delete horizon takes the place of the base timestamp (KIP-534). Called
by `compaction`.
"""

from typing import Final

from appliance.base.crc import crc32c
from appliance.base.ids import NO_TIMESTAMP
from appliance.logstore.scan import HeaderFields
from appliance.wire import compression
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX,
    LOG_APPEND_TIME_BIT,
    RECORDS_AT,
    UINT32,
)
from appliance.wire.record_keys import Place, moved_in_time, timestamp_delta

_CAP: Final = 1 << 30
"""Bytes that a stored batch may open to: it was checked when it came."""


def opened(header: HeaderFields, batch: memoryview) -> bytes:
    """The records of a batch without its codec. Raises PeerError."""
    if not header[12]:
        return b""
    codec = header[5] & CODEC_MASK
    if codec:
        return compression.decompress(codec, batch[RECORDS_AT:], _CAP)
    return bytes(batch[RECORDS_AT:])


def filtered(
    header: HeaderFields, body: bytes, kept: list[Place], new_horizon: int | None
) -> bytes:
    """The batch with the records `kept` alone. body: its records, opened. new_horizon: when its
    tombstones may go (ms since 1970), to be noted in it; None leaves that as it is."""
    base, _, epoch, magic, _, attributes, last_delta, base_time, newest, *producer, _ = header
    if attributes & LOG_APPEND_TIME_BIT:
        pass
    else:
        newest = base_time + max(timestamp_delta(body, place) for place in kept)
    if new_horizon is None:
        records = b"".join([body[place[0] : place[1]] for place in kept])
    else:
        shift = base_time - new_horizon
        records = b"".join([moved_in_time(body, place, shift) for place in kept])
        base_time, attributes = new_horizon, attributes | DELETE_HORIZON_BIT
    codec = attributes & CODEC_MASK
    packed = compression.compress(codec, records) if codec else records
    fields = (epoch, magic, 0, attributes, last_delta, base_time, newest, *producer, len(kept))
    return _sealed(base, fields, packed)


def empty(header: HeaderFields) -> bytes:
    """The header of a batch whose records are all gone: it keeps offsets and a producer's sequence
    number."""
    base, _, epoch, magic, _, attributes, last_delta, _, newest, *producer, _ = header
    attributes &= ~(CODEC_MASK | DELETE_HORIZON_BIT)
    fields = (epoch, magic, 0, attributes, last_delta, NO_TIMESTAMP, newest, *producer, 0)
    return _sealed(base, fields, b"")


def _sealed(base: int, fields: tuple[int, ...], records: bytes) -> bytes:
    out = bytearray(HEADER_SIZE)
    HEADER.pack_into(out, 0, base, HEADER_SIZE - LENGTH_PREFIX + len(records), *fields)
    out += records
    UINT32.pack_into(out, CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
    return bytes(out)
