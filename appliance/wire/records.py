"""Records one by one: reading them out of a batch and building a batch of our own.

For the slower users: log dump, offset for a timestamp, the metadata log, tools, tests. The produce
and fetch paths never come here. Invariant: `iter_records(build_batch(r))` gives `r` back.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from appliance.base.crc import crc32c
from appliance.base.errors import INVALID_RECORD, PeerError
from appliance.wire import compression
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_PREFIX,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
    UINT32,
    read_header,
)
from appliance.wire.record_walk import read_svarint
from appliance.wire.varint import svarint

Headers = tuple[tuple[bytes, bytes | None], ...]


class NewRecord(NamedTuple):
    """One record to build a batch of. timestamp: ms since 1970, -1 for none."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Record(NamedTuple):
    """One record as a consumer sees it. Header keys are UTF-8 by contract, not by check."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def iter_records(
    batch: bytes | bytearray | memoryview, cap: int = compression.OUTPUT_CAP
) -> Iterator[Record]:
    """The records of one whole batch, opened if it is compressed (to at most `cap` bytes).

    Raises PeerError(INVALID_RECORD) at a record that cannot be read, and what `compression.pieces`
    raises. Checks neither checksum nor count against each other: damaged files must be readable up
    to the damage.
    """
    header = read_header(batch)
    view = memoryview(batch)
    body: bytes | memoryview = view[RECORDS_AT : header.size]
    if header.codec:
        body = compression.decompress(header.codec, body, cap)
    appended = header.max_timestamp if header.is_log_append_time else None
    position, end = 0, len(body)
    for _ in range(header.record_count):
        try:
            record, position = read_record(body, position, end)
        except IndexError:
            raise PeerError(
                INVALID_RECORD, f"the record at byte {position} of the batch ends too early"
            ) from None
        delta, timestamp_delta, key, value, headers = record
        timestamp = header.base_timestamp + timestamp_delta if appended is None else appended
        yield Record(header.base_offset + delta, timestamp, key, value, headers)


Fields = tuple[int, int, bytes | None, bytes | None, Headers]


def read_record(data: bytes | memoryview, position: int, end: int) -> tuple[Fields, int]:
    """(fields, next position) of the record at `position`. Raises IndexError when it is cut off."""
    length, position = read_svarint(data, position, end)
    stop = position + length
    if length < 0 or stop > end:
        raise IndexError
    timestamp_delta, position = read_svarint(data, position + 1, stop, 10)
    delta, position = read_svarint(data, position, stop)
    key, position = _read_bytes(data, position, stop)
    value, position = _read_bytes(data, position, stop)
    count, position = read_svarint(data, position, stop)
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, stop)
        content, position = _read_bytes(data, position, stop)
        headers.append((name or b"", content))
    return (delta, timestamp_delta, key, value, tuple(headers)), stop


def _read_bytes(data: bytes | memoryview, position: int, stop: int) -> tuple[bytes | None, int]:
    size, position = read_svarint(data, position, stop)
    if size < 0:
        return None, position
    after = position + size
    if after > stop:
        raise IndexError
    return bytes(data[position:after]), after


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    deltas: Sequence[int] = (),
    codec: int = compression.NONE,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time: bool = False,
) -> bytes:
    """One whole batch with its checksum; not empty. Offsets count up from `base_offset`, or have
    these `deltas` from it, which ascend."""
    assert records, "a batch holds at least one record"
    deltas = deltas or range(len(records))
    assert len(deltas) == len(records)
    base_timestamp = records[0].timestamp
    body = compression.compress(codec, _encode_records(records, base_timestamp, deltas))
    attributes = (
        codec
        | (LOG_APPEND_TIME_BIT if log_append_time else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
    )
    out = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        out,
        0,
        base_offset,
        HEADER_SIZE - LENGTH_PREFIX + len(body),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        deltas[-1],
        base_timestamp,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    out += body
    UINT32.pack_into(out, CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
    return bytes(out)


def _encode_records(
    records: Iterable[NewRecord], base_timestamp: int, deltas: Iterable[int]
) -> bytes:
    out = bytearray()
    for delta, record in zip(deltas, records, strict=True):
        body = b"".join(
            (
                b"\x00",
                svarint(record.timestamp - base_timestamp),
                svarint(delta),
                _encode_bytes(record.key),
                _encode_bytes(record.value),
                svarint(len(record.headers)),
                *(_encode_bytes(name) + _encode_bytes(content) for name, content in record.headers),
            )
        )
        out += svarint(len(body))
        out += body
    return bytes(out)


def _encode_bytes(value: bytes | None) -> bytes:
    if value is None:
        return b"\x01"
    return svarint(len(value)) + value
