"""Up-conversion: a produced message set of format 0 or 1 becomes one batch of format 2, in steps.

A set is plain messages of one format, or one wrapper. What Apache Kafka 3.9 takes is taken: offsets
are assigned anew, an entry that is cut off at the end is left out, and CRCs inside a wrapper are
looked at. Invariant: memory is bounded by the set, one piece of an opened wrapper, one message and
the batch that is made. Caller: the I/O process, for Produce versions 0 to 2.
"""

from collections.abc import Iterator
from typing import Final

from appliance.base.crc import crc32c
from appliance.base.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    UNSUPPORTED_COMPRESSION_TYPE,
    PeerError,
)
from appliance.base.ids import NO_TIMESTAMP
from appliance.config.log_config import LogConfig
from appliance.wire import compression
from appliance.wire.batch import RECORDS_MAX, Walk
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    INT32,
    LENGTH_PREFIX,
    MAGIC,
    MAGIC_AT,
    UINT32,
)
from appliance.wire.message_set import OLD_MAGICS, OldEntry, mend_lz4, read_entry
from appliance.wire.recompression import make_compressor
from appliance.wire.varint import svarint

STEP: Final = 1024
"""Messages of one step: some 10 ms."""
WEIGHT: Final = 3 << 10
"""A message counts as so many opened bytes: what a turn has room for is counted in these
(`ioproc/requests/postponed.py`)."""

_LOG_APPEND_TIME: Final = "LogAppendTime"
_SIZE_AT: Final = 8
_SMALLEST: Final = 14
"""What the size field of an entry says at least."""


class SetUpConversion:
    """The way of one message set to format 2. It refers to the set's bytes.

    batch: made, once `advance` was True. next_walk: over its records, where its check or another
    codec takes several turns; `advance` then goes on with that.
    """

    __slots__ = ("_codec", "_compressor", "_count", "_first_time", "_last_time", "_out", "_steps",
                 "batch", "next_walk")  # fmt: skip

    def __init__(self, data: memoryview, rules: LogConfig, codec: int = -1) -> None:
        """codec: of the batch, -1: as the set."""
        self.batch: memoryview | None = None
        self.next_walk: Walk | None = None
        self._codec = max(codec, compression.NONE)
        self._compressor = make_compressor(self._codec)
        self._out = bytearray(HEADER_SIZE)
        self._count = 0
        self._first_time = self._last_time = NO_TIMESTAMP
        self._steps = self._convert(data, rules, keeps=codec < 0)

    def advance(self) -> bool:
        """Go on for one step; True at the end. Raises PeerError with the code to answer."""
        if self.next_walk is not None:
            return self.next_walk.advance()
        for _ in self._steps:
            return False
        return True

    def _convert(self, data: memoryview, rules: LogConfig, *, keeps: bool) -> Iterator[None]:
        most, stamps = rules.max_message_bytes, rules.message_timestamp_type == _LOG_APPEND_TIME
        codec, at, magic, entries = compression.NONE, 0, -1, 0
        while at < len(data):
            size = _whole_entry(data, at)
            if not size:
                break
            if size > most:
                raise PeerError(
                    MESSAGE_TOO_LARGE,
                    f"a message of {size} bytes is larger than max.message.bytes={most}",
                )
            if magic not in (-1, data[at + MAGIC_AT]):
                raise PeerError(INVALID_RECORD, "messages of several formats are in one set")
            entry = read_entry(data, at, at + size, placed=False)
            magic = entry.magic
            at += size
            entries += 1
            if stamps and entry.is_log_append_time:
                raise PeerError(
                    INVALID_TIMESTAMP, "a producer must not set the timestamp type to LogAppendTime"
                )
            if codec or (entry.codec and entries > 1):
                raise PeerError(INVALID_RECORD, "a compressed set is not alone in its request")
            if entry.codec:
                codec = _known(entry.codec)
                if keeps:
                    self._codec, self._compressor = codec, make_compressor(codec)
                yield from self._open(entry)
            elif self._add(entry):
                yield
        if not self._count:
            raise PeerError(INVALID_RECORD, "a message set has no message")
        self._finish()

    def _open(self, wrapper: OldEntry) -> Iterator[None]:
        """Add the messages of a wrapper."""
        if wrapper.value is None:
            raise PeerError(INVALID_RECORD, "a compressed set is null")
        appended = wrapper.timestamp if wrapper.is_log_append_time else None
        packed = wrapper.value
        if wrapper.codec == compression.LZ4 and not wrapper.magic:
            packed = mend_lz4(packed)
        rest = b""
        need = LENGTH_PREFIX
        waiting: list[bytes] = []
        for piece in compression.pieces(wrapper.codec, packed):
            waiting.append(piece)
            need -= len(piece)
            if need > 0:
                continue
            body = b"".join((rest, *waiting))
            waiting.clear()
            view, at = memoryview(body), 0
            while size := _whole_entry(view, at):
                entry = read_entry(view, at, at + size, placed=False)
                if entry.codec:
                    raise PeerError(INVALID_RECORD, "a compressed set holds another one")
                if entry.magic != wrapper.magic:
                    raise PeerError(
                        INVALID_RECORD,
                        f"a message of format {entry.magic} is in one of format {wrapper.magic}",
                    )
                if wrapper.magic and 0 < wrapper.offset < entry.offset:
                    raise PeerError(
                        INVALID_RECORD,
                        f"a compressed set at offset {wrapper.offset} has offset {entry.offset}",
                    )
                at += size
                if self._add(entry, appended):
                    yield
            rest = body[at:]
            need = _missing(rest)

    def _add(self, entry: OldEntry, appended: int | None = None) -> bool:
        """Add one message; True at the end of a step. appended: its time, None: its own."""
        time = entry.timestamp if appended is None else appended
        if time < NO_TIMESTAMP:
            raise PeerError(INVALID_TIMESTAMP, f"the timestamp {time} of a message is negative")
        count = self._count
        if count >= RECORDS_MAX:
            raise PeerError(
                MESSAGE_TOO_LARGE, f"a message set has more than {RECORDS_MAX} messages"
            )
        if not count:
            self._first_time = time
        body = b"".join(
            (
                b"\x00",
                svarint(time - self._first_time),
                svarint(count),
                _sized(entry.key),
                _sized(entry.value),
                b"\x00",
            )
        )
        self._out += self._compressor.compress(svarint(len(body)) + body)
        self._last_time = max(self._last_time, time)
        self._count = count + 1
        compression.OPENED[0] += WEIGHT
        return not (count + 1) % STEP

    def _finish(self) -> None:
        out, count = self._out, self._count
        out += self._compressor.flush()
        HEADER.pack_into(
            out, 0, 0, len(out) - LENGTH_PREFIX, -1, MAGIC, 0, self._codec, count - 1,
            self._first_time, self._last_time, -1, -1, -1, count,
        )  # fmt: skip
        UINT32.pack_into(out, CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
        self.batch = memoryview(out)


def is_old_set(data: memoryview, position: int, length: int) -> bool:
    """True unless the bytes there begin with a batch of format 2: then they are one."""
    return length < HEADER_SIZE or data[position + MAGIC_AT] != MAGIC


def _whole_entry(data: memoryview, at: int) -> int:
    """Bytes of the entry there, 0 when it is cut off. Raises PeerError where there is none."""
    remaining = len(data) - at
    if remaining < LENGTH_PREFIX:
        return 0
    (size,) = INT32.unpack_from(data, at + _SIZE_AT)
    if size < _SMALLEST:
        raise PeerError(CORRUPT_MESSAGE, f"a message states {size} bytes, fewer than its head has")
    if remaining <= MAGIC_AT:
        return 0
    if data[at + MAGIC_AT] not in (*OLD_MAGICS, MAGIC):
        raise PeerError(CORRUPT_MESSAGE, f"there is no message format {data[at + MAGIC_AT]}")
    return 0 if size + LENGTH_PREFIX > remaining else int(size + LENGTH_PREFIX)


def _missing(rest: bytes) -> int:
    """Bytes of the next message of a wrapper that are not opened yet, as far as it is known."""
    if len(rest) < LENGTH_PREFIX:
        return LENGTH_PREFIX - len(rest)
    return int(INT32.unpack_from(rest, _SIZE_AT)[0]) + LENGTH_PREFIX - len(rest)


def _known(codec: int) -> int:
    """The codec, which these formats know."""
    if codec > compression.LZ4:
        code = INVALID_RECORD if codec == compression.ZSTD else UNSUPPORTED_COMPRESSION_TYPE
        text = f"message formats 0 and 1 have no codec {codec}; they have gzip, snappy and lz4"
        raise PeerError(code, text)
    return codec


def _sized(value: bytes | None) -> bytes:
    return b"\x01" if value is None else svarint(len(value)) + value
