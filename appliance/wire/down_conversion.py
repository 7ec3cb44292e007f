"""Down-conversion: batches of format 2 as message sets of format 0 or 1, for Fetch versions 0 to 3.

As Apache Kafka 3.9 does it: each compressed batch becomes one wrapper, each record of another one a
message; headers, producers and transactions are left out, and so are control batches; a record of
an aborted transaction is seen. Format 0 has no times. zstd cannot be told. Invariant: memory is
bounded by the batch, one piece of its opened records, and what is made. Source: KIP-31, KIP-32.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final
from zlib import crc32

from appliance.base.errors import INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE, PeerError
from appliance.base.ids import NO_TIMESTAMP
from appliance.wire import compression
from appliance.wire.batch_header import (
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    RECORDS_AT,
    BatchHeader,
    read_header,
)
from appliance.wire.message_set import break_lz4
from appliance.wire.recompression import make_compressor
from appliance.wire.records import read_record

STEP: Final = 256
"""Records between two stops: a millisecond or two."""

_BEGIN: Final = Struct(">qiI")  # offset, bytes from the CRC on, CRC-32
_BODY: Final = (Struct(">bbi"), Struct(">bbqi"))  # magic, attributes, [time,] bytes of the key
_I32: Final = Struct(">i").pack
_NULL: Final = _I32(-1)
_HEADS: Final = 4
"""Of the size field itself: what it counts begins with the CRC-32."""


class MessageSet:
    """The message set that is made for one partition of an answer.

    out: its bytes. next_offset: behind the last record that was looked at. is_full: it takes no
    more. room: asked before each entry, with its bytes: how many of them may be added; fewer than
    all of them end the set, and what is added then is cut off, which tells an old consumer how much
    it must ask for.
    """

    __slots__ = ("_first", "_magic", "_room", "is_full", "next_offset", "out")

    def __init__(self, magic: int, first: int, room: Callable[[int], int]) -> None:
        """magic: the format. first: the fetch offset, before which no plain message is needed."""
        self._magic = magic
        self._first = first
        self._room = room
        self.out = bytearray()
        self.next_offset = first
        self.is_full = False

    def add_batch(self, batch: bytes) -> Iterator[None]:
        """Add one whole batch, in steps. Raises PeerError when it cannot be opened or told."""
        header = read_header(batch)
        if not header.attributes & CONTROL_BIT:
            if header.codec == compression.ZSTD:
                raise PeerError(
                    UNSUPPORTED_COMPRESSION_TYPE,
                    "records in zstd cannot be told to Fetch versions below 4",
                )
            add = self._add_wrapper if header.codec else self._add_messages
            yield from add(header, memoryview(batch)[RECORDS_AT : header.size])
        if not self.is_full:
            self.next_offset = max(self.next_offset, header.last_offset + 1)

    def _add_messages(self, header: BatchHeader, body: memoryview) -> Iterator[None]:
        kind = header.attributes & LOG_APPEND_TIME_BIT if self._magic else 0
        for number, (offset, time, key, value) in enumerate(_records(header, body), 1):
            if offset >= self._first:
                self._add(message(self._magic, offset, kind, time, key, value))
                if self.is_full:
                    return
            if not number % STEP:
                yield

    def _add_wrapper(self, header: BatchHeader, body: memoryview) -> Iterator[None]:
        magic, codec = self._magic, header.codec
        kind = header.attributes & LOG_APPEND_TIME_BIT if magic else 0
        compressor = make_compressor(codec)
        packed = bytearray()
        base = last = -1
        newest = NO_TIMESTAMP
        for number, (offset, time, key, value) in enumerate(_records(header, body), 1):
            if base < 0:
                base = offset
            place = offset - base if magic else offset
            packed += compressor.compress(message(magic, place, kind, time, key, value))
            last, newest = offset, max(newest, time)
            if not number % STEP:
                yield
        if last < 0:
            return
        packed += compressor.flush()
        whole = bytes(packed)
        if codec == compression.LZ4 and not magic:
            whole = break_lz4(whole)
        self._add(message(magic, last, kind | codec, newest, None, whole))

    def _add(self, entry: bytes) -> None:
        room = self._room(len(entry))
        self.is_full = room < len(entry)
        self.out += entry[:room] if self.is_full else entry


def message(
    magic: int, offset: int, attributes: int, time: int, key: bytes | None, value: bytes | None
) -> bytes:
    """One message of format 0 or 1, or a wrapper. time: ms since 1970, -1 for none; format 0 has
    none."""
    size = -1 if key is None else len(key)
    if magic:
        head = _BODY[1].pack(magic, attributes, time, size)
    else:
        head = _BODY[0].pack(magic, attributes, size)
    end = (_NULL,) if value is None else (_I32(len(value)), value)
    body = b"".join((head, key or b"", *end))
    return _BEGIN.pack(offset, len(body) + _HEADS, crc32(body)) + body


def _records(
    header: BatchHeader, body: memoryview
) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """(offset, time, key, value) of each record, opened piece by piece."""
    appended = header.max_timestamp if header.is_log_append_time else None
    left, base, first = header.record_count, header.base_offset, header.base_timestamp
    rest, waiting, need = b"", [], 1
    for piece in compression.pieces(header.codec, body, _CAP):
        waiting.append(piece)
        need -= len(piece)
        if need > 0:
            continue
        data = b"".join((rest, *waiting))
        waiting.clear()
        at, end = 0, len(data)
        while left and at < end:
            try:
                (delta, time, key, value, _), at = read_record(data, at, end)
            except IndexError:
                break
            left -= 1
            yield base + delta, first + time if appended is None else appended, key, value
        rest = data[at:]
        need = _missing(rest)
    if left:
        raise PeerError(INVALID_RECORD, f"a stored batch has {left} records less than it states")


_CAP: Final = 1 << 28
"""Bytes that a stored batch may open to: it was checked when it came."""


def _missing(rest: bytes) -> int:
    """Bytes of the next record that are not opened yet, as far as it is known."""
    value = shift = 0
    for at, byte in enumerate(rest[:5]):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return max(1, (value >> 1) + at + 1 - len(rest))
    return 1


assert HEADER.size == HEADER_SIZE
