"""Record batches, format 2: the full check of a produced batch, and stamps before it is stored.

Invariant: a batch that passed `validate` is exactly one batch, its checksum holds, its count of
records is the number of records that it holds, and any client that can open its codec can step
through it. Its newest timestamp is that of its records, except in the middle of a long batch whose
head agrees with its ends. Error codes are those of Kafka's log validation. Caller of the hot
function `validate`: the I/O process, once per batch, with the bytes in shared memory.
"""

from typing import Final, Protocol

from appliance.base.crc import crc32c
from appliance.base.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    INVALID_TXN_STATE,
    MESSAGE_TOO_LARGE,
    PeerError,
)
from appliance.base.ids import NO_TIMESTAMP
from appliance.config.log_config import LogConfig
from appliance.wire import compression
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    INT16,
    INT32,
    INT64,
    LEADER_EPOCH_AT,
    LENGTH_PREFIX,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAX_TIMESTAMP_AT,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
    UINT32,
    BatchHeader,
    read_header,
)
from appliance.wire.record_walk import (
    FIELDS_COST,
    SMALLEST_RECORD,
    PiecesWalk,
    check_ends,
    walk_fields,
    walk_lengths,
)
from appliance.wire.records import NewRecord, Record, build_batch, iter_records

__all__ = [
    "HEADER",
    "HEADER_SIZE",
    "RECORDS_MAX",
    "BatchHeader",
    "NewRecord",
    "Record",
    "assign",
    "build_batch",
    "checksum_holds",
    "iter_records",
    "read_header",
    "stamp_log_append_time",
    "validate",
]

FEW_RECORDS: Final = 8
"""Up to as many every record is read: then it costs little beside the rest of a request. Of more
the first and the last are read, unless these or the head show that the head is wrong."""

MANY_RECORDS: Final = 1 << 12
"""Records of an uncompressed batch from which on they are counted as work of the turn."""

STEP: Final = 4 << 20
"""Decompressed bytes that are walked over at a time, fewer of short records: 2 to 20 ms."""

_LATEST: Final = (1 << 63) - 1

_SPECIAL: Final = TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT | LOG_APPEND_TIME_BIT
_LOG_APPEND_TIME: Final = "LogAppendTime"

RECORDS_MAX: Final = 1 << 20
"""Records in a compressed batch: a few kilobytes may open to millions, and walking takes time."""


def validate(
    batch: memoryview,
    rules: LogConfig,
    now_ms: int,
    *,
    transactional: bool = False,
    control: bool = False,
    walk: "BatchWalk | None" = None,
) -> BatchHeader:
    """Check one whole produced batch against the protocol and its topic's settings.

    batch: exactly the bytes that the producer sent as one batch. now_ms: wall clock, for the
    timestamp bounds. transactional, control: whether such a batch may come from this caller. walk:
    over the records of this batch, at its end; else raises LongWalk where that takes long.
    Returns the header. A head that states another newest timestamp than the records have is
    corrected in place, as Kafka does. Raises PeerError with the code to answer; then nothing was
    changed.
    """
    size = len(batch)
    if size < HEADER_SIZE:
        raise PeerError(
            CORRUPT_MESSAGE, f"record batch of {size} bytes; at least {HEADER_SIZE} are needed"
        )
    header = BatchHeader._make(HEADER.unpack_from(batch))
    (
        base_offset, length, _, magic, crc, attributes, last_delta, _, _,
        producer_id, producer_epoch, base_sequence, count,
    ) = header  # fmt: skip
    if length != size - LENGTH_PREFIX or magic != MAGIC:
        raise _not_one_batch(header, size)
    if base_offset != 0:
        raise PeerError(INVALID_RECORD, f"base offset {base_offset} of a produced batch must be 0")
    if size > rules.max_message_bytes:
        raise PeerError(
            MESSAGE_TOO_LARGE,
            f"record batch of {size} bytes is larger than max.message.bytes="
            f"{rules.max_message_bytes}; send smaller batches or raise the topic's setting",
        )
    if crc32c(batch[ATTRIBUTES_AT:]) != crc:
        raise PeerError(CORRUPT_MESSAGE, "the CRC32C of the record batch does not match its bytes")
    if count < 1 or last_delta != count - 1:
        raise PeerError(
            INVALID_RECORD,
            f"record count {count} and last offset delta {last_delta} do not belong together; "
            "the delta must be the count less one, the count at least 1",
        )
    if attributes & _SPECIAL:
        _check_attributes(header, transactional, control, rules)
    if producer_id != -1 and (producer_id < 0 or base_sequence < 0 or producer_epoch < 0):
        raise _bad_producer(header)
    if walk is None:
        low, high = _read_records(batch, header, rules.compact)
    else:
        low, high = walk.low, walk.high
    if rules.message_timestamp_type == _LOG_APPEND_TIME:
        return header
    return _with_times(batch, header, low, high, rules, now_ms)


def _read_records(batch: memoryview, header: BatchHeader, key_needed: bool) -> tuple[int, int]:
    """Hold records against the batch's length and count; the smallest timestamp delta that was read
    and the largest that any of them may have."""
    size, count = len(batch), header.record_count
    stated = header.max_timestamp - header.base_timestamp
    whole = key_needed or count <= FEW_RECORDS or stated < 0
    if header.attributes & CODEC_MASK:
        return _walk_compressed(batch, header, whole, key_needed)
    if count > MANY_RECORDS:
        compression.OPENED[0] += count * (FIELDS_COST if whole else 1) * SMALLEST_RECORD
    if whole:
        return _walk_fields(batch, header, key_needed)
    at, missing, last = walk_lengths(batch, RECORDS_AT, size, count)
    if missing or at != size:
        raise _not_filled(header, size, at, missing)
    low = check_ends(batch, RECORDS_AT, size, 0)
    high = check_ends(batch, size - last, size, count - 1)
    if low > high:
        low, high = high, low
    if high > stated:
        return _walk_fields(batch, header, key_needed)
    return low, stated


def _with_times(
    batch: memoryview, header: BatchHeader, low: int, high: int, rules: LogConfig, now_ms: int
) -> BatchHeader:
    """Hold the timestamps against the topic's bounds; the header, corrected in place where it
    states another newest timestamp."""
    base, stated = header.base_timestamp, header.max_timestamp
    oldest, newest = base + low, base + high
    append_time = header.attributes & LOG_APPEND_TIME_BIT
    if append_time:  # then the head's is that of every record
        oldest = newest = stated
    _check_timestamps(oldest, newest, rules, now_ms)
    if newest < NO_TIMESTAMP:
        newest = NO_TIMESTAMP
    if newest != stated or append_time:
        return _restate(batch, header, newest)
    return header


class BatchWalk:
    """Holds compressed records against the batch's count, all their fields where `whole` says so or
    one of them is newer than the head. low, high: at the end the smallest timestamp delta that was
    read and the largest that any record may have. It refers to the batch's bytes."""

    __slots__ = ("_batch", "_header", "_key_needed", "_walk", "_whole", "high", "low")

    def __init__(
        self, batch: memoryview, header: BatchHeader, whole: bool, key_needed: bool
    ) -> None:
        self._batch = batch
        self._header = header
        self._whole = whole
        self._key_needed = key_needed
        self._walk = self._begin()
        self.low = self.high = 0

    def _begin(self) -> PiecesWalk:
        header = self._header
        pieces = compression.pieces(header.codec, self._batch[RECORDS_AT:])
        return PiecesWalk(pieces, header.record_count, self._whole, self._key_needed)

    def advance(self) -> bool:
        """Walk on for about STEP bytes; True at the end. Raises PeerError."""
        walk, header, before = self._walk, self._header, compression.OPENED[0]
        if not walk.advance(STEP):  # short records cost more than the bytes that they have
            compression.OPENED[0] = max(compression.OPENED[0], before + STEP)
            return False
        stated = header.max_timestamp - header.base_timestamp
        if not self._whole and walk.high > stated:
            self._whole = True
            self._walk = self._begin()
            return self.advance()
        self.low, self.high = walk.low, walk.high if self._whole else stated
        return True


class Walk(Protocol):
    """Work on one batch over several turns."""

    def advance(self) -> bool:
        """Go on for one step; True at the end. Raises PeerError."""
        ...


class LongWalk(PeerError):
    """The records of a batch are not walked over, or not compressed anew, yet: `walk.advance` goes
    on, and then the append takes it. The code is for callers that do not go on."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(MESSAGE_TOO_LARGE, "the records of this batch take several turns")
        self.walk = walk


def _walk_compressed(
    batch: memoryview, header: BatchHeader, whole: bool, key_needed: bool
) -> tuple[int, int]:
    """The smallest and the largest timestamp delta of compressed records. Raises LongWalk after
    STEP bytes."""
    count = header.record_count
    if count > RECORDS_MAX:
        raise PeerError(
            MESSAGE_TOO_LARGE,
            f"{count} records in one compressed batch; at most {RECORDS_MAX}, send smaller batches",
        )
    walk = BatchWalk(batch, header, whole, key_needed)
    if not walk.advance():
        raise LongWalk(walk)
    return walk.low, walk.high


def _walk_fields(batch: memoryview, header: BatchHeader, key_needed: bool) -> tuple[int, int]:
    """Hold every field of every record against the batch's length and count; the smallest and the
    largest timestamp delta."""
    size, count = len(batch), header.record_count
    at, missing, low, high = walk_fields(batch, RECORDS_AT, size, count, 0, key_needed)
    if missing or at != size:
        raise _not_filled(header, size, at, missing)
    return low, high


def _restate(batch: memoryview, header: BatchHeader, newest: int) -> BatchHeader:
    """The header with this newest timestamp, of type CreateTime; the batch has it in place."""
    if newest > _LATEST:
        raise PeerError(INVALID_TIMESTAMP, f"timestamp {newest} has more than 64 bits")
    attributes = header.attributes & ~LOG_APPEND_TIME_BIT
    INT16.pack_into(batch, ATTRIBUTES_AT, attributes)
    INT64.pack_into(batch, MAX_TIMESTAMP_AT, newest)
    crc = crc32c(batch[ATTRIBUTES_AT:])
    UINT32.pack_into(batch, CRC_AT, crc)
    return header._replace(attributes=attributes, max_timestamp=newest, crc=crc)


def _not_filled(header: BatchHeader, size: int, at: int, missing: int) -> PeerError:
    count = header.record_count
    return PeerError(
        INVALID_RECORD,
        f"record batch states {count} records; {count - missing} fill {at - RECORDS_AT} of its "
        f"{size - RECORDS_AT} bytes",
    )


def _not_one_batch(header: BatchHeader, size: int) -> PeerError:
    """As Kafka answers: magic 0 and 1 are old formats, anything else is no batch at all."""
    if header.magic != MAGIC:
        code = INVALID_RECORD if header.magic in (0, 1) else CORRUPT_MESSAGE
        return PeerError(code, f"record format {header.magic} is not taken; send format {MAGIC}")
    if HEADER_SIZE - LENGTH_PREFIX <= header.batch_length < size - LENGTH_PREFIX:
        return PeerError(
            INVALID_RECORD,
            f"a batch of {header.size} bytes is followed by {size - header.size} more; "
            "a produce request carries exactly one batch per partition",
        )
    return PeerError(CORRUPT_MESSAGE, f"record batch states {header.size} bytes, {size} were sent")


def _check_attributes(
    header: BatchHeader, transactional: bool, control: bool, rules: LogConfig
) -> None:
    if header.attributes & LOG_APPEND_TIME_BIT and (
        header.max_timestamp == NO_TIMESTAMP or rules.message_timestamp_type == _LOG_APPEND_TIME
    ):
        raise PeerError(
            INVALID_TIMESTAMP, "a producer must not set the timestamp type to LogAppendTime"
        )
    if header.attributes & DELETE_HORIZON_BIT:
        raise PeerError(INVALID_RECORD, "a producer must not set a delete horizon")
    if header.is_control and not control:
        raise PeerError(INVALID_RECORD, "clients are not allowed to write control records")
    if header.is_transactional and not transactional:
        raise PeerError(
            INVALID_TXN_STATE,
            "transactional batch outside a transaction; begin a transaction first",
        )
    if header.is_transactional and header.producer_id < 0:
        raise PeerError(INVALID_RECORD, "transactional batch without a producer id")


def _bad_producer(header: BatchHeader) -> PeerError:
    return PeerError(
        INVALID_RECORD,
        f"producer id {header.producer_id} with epoch {header.producer_epoch} and base sequence "
        f"{header.base_sequence}; an idempotent batch needs all three to be at least 0",
    )


def _check_timestamps(base: int, newest: int, rules: LogConfig, now_ms: int) -> None:
    """Oldest and newest timestamp within the topic's bounds; -1 stands for none and passes."""
    oldest_ok = now_ms - rules.message_timestamp_before_max_ms
    newest_ok = now_ms + rules.message_timestamp_after_max_ms
    if oldest_ok <= base <= newest_ok and oldest_ok <= newest <= newest_ok:
        return
    for timestamp in (base, newest):
        if timestamp != -1 and not oldest_ok <= timestamp <= newest_ok:
            raise PeerError(
                INVALID_TIMESTAMP,
                f"timestamp {timestamp} is outside {oldest_ok} to {newest_ok} (ms), the bounds of "
                "message.timestamp.before.max.ms and message.timestamp.after.max.ms",
            )


def checksum_holds(batch: memoryview) -> bool:
    """True if the stored CRC32C is that of the bytes. `batch`: exactly one, 61 bytes or more."""
    (stated,) = UINT32.unpack_from(batch, CRC_AT)
    return bool(crc32c(batch[ATTRIBUTES_AT:]) == stated)


def assign(batch: memoryview, base_offset: int, leader_epoch: int) -> None:
    """Patch offset and leader epoch in place; the checksum does not cover them."""
    INT64.pack_into(batch, BASE_OFFSET_AT, base_offset)
    INT32.pack_into(batch, LEADER_EPOCH_AT, leader_epoch)


def stamp_log_append_time(batch: memoryview, now_ms: int) -> None:
    """Make `now_ms` the time of every record (LogAppendTime), in place, with a new checksum."""
    (attributes,) = INT16.unpack_from(batch, ATTRIBUTES_AT)
    INT16.pack_into(batch, ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
    INT64.pack_into(batch, MAX_TIMESTAMP_AT, now_ms)
    UINT32.pack_into(batch, CRC_AT, crc32c(batch[ATTRIBUTES_AT:]))
