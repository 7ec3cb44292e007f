"""Message sets of formats 0 and 1, which Kafka wrote until 0.11, and their conversion to format 2.

An entry is one message, or a wrapper: a message whose value is a compressed set. Offsets inside a
wrapper of format 0 are absolute; in format 1 (KIP-31) they are relative, and the wrapper has the
last one. Format 1 also has timestamps (KIP-32). Invariant: no length is believed before it is held
against the bytes that remain; what a wrapper opens to is bounded. Not for a hot path: the cost is
per record. Callers: `logstore/format_upgrade.py`, `penstock log dump`.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.base.ids import NO_TIMESTAMP
from appliance.wire import compression
from appliance.wire.batch_header import CODEC_MASK, INT32, INT64, LOG_APPEND_TIME_BIT, MAGIC_AT
from appliance.wire.records import NewRecord, build_batch

_HEAD: Final = Struct(">qiIbb")  # offset, bytes from the CRC on, CRC-32, magic, attributes
HEAD_SIZE: Final = 18
assert _HEAD.size == HEAD_SIZE
_PREFIX: Final = 12
"""Bytes before those that the size field counts."""
_SHORTEST: Final = (14, 22)
"""What the size field says at least: of a message of format 0, of format 1."""
OLD_MAGICS: Final = (0, 1)

GROUP_BYTES: Final = 16 << 10
"""Keys and values of plain messages that become one batch: Kafka's default batch.size."""
_FARTHEST: Final = 1 << 30
"""Between the first and the last offset of a batch, at most."""

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_WORD: Final = Struct("<I")
_MASK: Final = 0xFFFFFFFF


class OldEntry(NamedTuple):
    """One entry of a set. offset: of its last message. timestamp: ms since 1970, -1 in format 0.
    value: of a wrapper, the compressed set. size: bytes of the whole entry."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    size: int
    crc: int

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.magic and self.attributes & LOG_APPEND_TIME_BIT)


class OldMessage(NamedTuple):
    """One message with its absolute offset. timestamp: ms since 1970, -1 for none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def read_entry(
    data: memoryview, position: int, end: int, *, checked: bool = True, placed: bool = True
) -> OldEntry:
    """The entry at `position`. checked: its CRC-32 must hold. placed: its offset counts.

    Raises PeerError(CORRUPT_MESSAGE) unless a whole entry of format 0 or 1 lies before `end`.
    """
    if end - position < HEAD_SIZE:
        raise _corrupt("the head of a message is cut off")
    offset, size, crc, magic, attributes = _HEAD.unpack_from(data, position)
    if magic not in OLD_MAGICS or size < _SHORTEST[magic] or (placed and offset < 0):
        raise _corrupt("there is no message of format 0 or 1")
    stop = position + _PREFIX + size
    if stop > end:
        raise _corrupt(f"a message of {size + _PREFIX} bytes is cut off after {end - position}")
    if checked and crc32(data[position + MAGIC_AT : stop]) != crc:
        raise _corrupt("the CRC-32 of a message does not match its bytes")
    at, timestamp = position + HEAD_SIZE, NO_TIMESTAMP
    if magic:
        (timestamp,) = INT64.unpack_from(data, at)
        at += 8
    key, at = _read_bytes(data, at, stop)
    value, at = _read_bytes(data, at, stop)
    if at != stop:
        raise _corrupt(f"{stop - at} bytes follow the value of a message")
    return OldEntry(offset, magic, attributes, timestamp, key, value, size + _PREFIX, crc)


def _read_bytes(data: memoryview, at: int, stop: int) -> tuple[bytes | None, int]:
    if stop - at < 4:
        raise _corrupt("a message ends inside a length")
    (size,) = INT32.unpack_from(data, at)
    at += 4
    if size < 0:
        return None, at
    if size > stop - at:
        raise _corrupt(f"a message states {size} bytes where {stop - at} remain")
    return bytes(data[at : at + size]), at + size


def open_entry(entry: OldEntry, cap: int = compression.OUTPUT_CAP) -> list[OldMessage]:
    """The messages of an entry, at least one, offsets ascending. cap: bytes that a wrapper may open
    to. CRCs inside a wrapper are not looked at, as Kafka does not.

    Raises PeerError for a wrapper that cannot be opened, is empty, or holds another wrapper.
    """
    if not entry.codec:
        return [OldMessage(entry.offset, entry.timestamp, entry.key, entry.value)]
    if entry.codec > compression.LZ4 or entry.value is None:
        raise _corrupt(f"a message of format {entry.magic} has no set in codec {entry.codec}")
    packed = entry.value
    if entry.codec == compression.LZ4 and not entry.magic:
        packed = mend_lz4(packed)
    body = memoryview(compression.decompress(entry.codec, packed, cap))
    inner: list[OldEntry] = []
    at = 0
    while at < len(body):
        inner.append(read_entry(body, at, len(body), checked=False))
        at += inner[-1].size
    if not inner:
        raise _corrupt("a compressed set holds no message")
    shift = _shift(entry, inner[-1].offset)
    found = []
    before = -1
    for one in inner:
        if one.codec:
            raise _corrupt("a compressed set holds another one")
        if one.offset <= before:
            raise _corrupt(f"offset {one.offset} follows {before} in a compressed set")
        before = one.offset
        time = entry.timestamp if entry.is_log_append_time else one.timestamp
        found.append(OldMessage(one.offset + shift, time, one.key, one.value))
    return found


def _shift(entry: OldEntry, last: int) -> int:
    """Absolute less stated offset of the messages in a wrapper."""
    if not entry.magic or not entry.offset:  # old librdkafka leaves 0 in the wrapper
        return 0
    if last > entry.offset:
        raise _corrupt(f"a compressed set at offset {entry.offset} ends with offset {last}")
    return entry.offset - last


def convert_entries(
    entries: Iterable[OldEntry], cap: int = compression.OUTPUT_CAP
) -> Iterator[bytes]:
    """Batches of format 2 with the same messages: offsets, times, keys, values, codecs.

    A wrapper becomes one batch; plain messages are put together as far as format, kind of time and
    `GROUP_BYTES` allow. The leader epoch is -1. Raises PeerError as `open_entry`, and where offsets
    go back.
    """
    group: list[OldMessage] = []
    kind: tuple[int, int, int | None] = (0, 0, None)
    size, before = 0, -1
    for entry in entries:
        found = open_entry(entry, cap)
        if found[0].offset <= before:
            raise _corrupt(f"offset {found[0].offset} follows {before}")
        before = found[-1].offset
        time = entry.timestamp if entry.is_log_append_time else None
        new = entry.magic, entry.codec, time
        more = len(entry.key or b"") + len(entry.value or b"")
        if group and (
            entry.codec
            or new != kind
            or size + more > GROUP_BYTES
            or before - group[0].offset > _FARTHEST
        ):
            yield _batch(group, kind)
            group, size = [], 0
        group += found
        kind, size = new, size + more
    if group:
        yield _batch(group, kind)


def _batch(group: list[OldMessage], kind: tuple[int, int, int | None]) -> bytes:
    base = group[0].offset
    return build_batch(
        [NewRecord(one.timestamp, one.key, one.value) for one in group],
        base_offset=base,
        deltas=[one.offset - base for one in group],
        codec=kind[1],
        log_append_time=kind[2] is not None,
    )


def mend_lz4(frame: bytes) -> bytes:
    """The frame with the right checksum of its head: writers of format 0 took the frame's magic
    number into it (KAFKA-3160)."""
    return _with_checksum(frame, 4)


def break_lz4(frame: bytes) -> bytes:
    """The frame as writers of format 0 made it, which its readers expect. frame: without a content
    size."""
    return _with_checksum(frame, 0)


def _with_checksum(frame: bytes, start: int) -> bytes:
    """The frame with the checksum of its head from byte `start` on."""
    if len(frame) < 7 or frame[:4] != _LZ4_MAGIC:
        return frame
    end = 6 + (8 if frame[4] & 8 else 0) + (4 if frame[4] & 1 else 0)
    if end >= len(frame):
        return frame
    return frame[:end] + bytes((_xxh32(frame[start:end]) >> 8 & 0xFF,)) + frame[end + 1 :]


def _xxh32(data: bytes) -> int:
    """xxHash of fewer than 16 bytes, 32 bits, seed 0."""
    assert len(data) < 16
    value = 374761393 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = value + _WORD.unpack_from(data, at)[0] * 3266489917 & _MASK
        value = ((value << 17 | value >> 15) & _MASK) * 668265263 & _MASK
    for byte in data[whole:]:
        value = value + byte * 374761393 & _MASK
        value = ((value << 11 | value >> 21) & _MASK) * 2654435761 & _MASK
    value = (value ^ value >> 15) * 2246822519 & _MASK
    value = (value ^ value >> 13) * 3266489917 & _MASK
    return value ^ value >> 16


def _corrupt(text: str) -> PeerError:
    return PeerError(CORRUPT_MESSAGE, text)
