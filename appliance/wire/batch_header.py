"""The 61 bytes that open a record batch of format 2 (KIP-98), and what lies where in them.

Base offset and leader epoch lie before the checksum, so a broker may patch them without computing
it again; everything from the attributes on is covered by it. Callers: validation, the log store,
the produce and fetch paths.
"""

from struct import Struct
from typing import Final, NamedTuple

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
assert HEADER.size == HEADER_SIZE

BASE_OFFSET_AT: Final = 0  # int64
LENGTH_PREFIX: Final = 12
LEADER_EPOCH_AT: Final = 12  # int32
MAGIC_AT: Final = 16  # int8
CRC_AT: Final = 17  # uint32, over everything from ATTRIBUTES_AT on
ATTRIBUTES_AT: Final = 21  # int16
MAX_TIMESTAMP_AT: Final = 35  # int64, ms
PRODUCER_ID_AT: Final = 43  # int64
PRODUCER_EPOCH_AT: Final = 51  # int16
BASE_SEQUENCE_AT: Final = 53  # int32
RECORDS_AT: Final = HEADER_SIZE

MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40  # KIP-534: base timestamp is the delete horizon of a tombstone

INT64: Final = Struct(">q")
INT32: Final = Struct(">i")
INT16: Final = Struct(">h")
UINT32: Final = Struct(">I")


class BatchHeader(NamedTuple):
    """One unpacked header. Times in ms since 1970; -1 is none (timestamps, producer fields)."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LENGTH_PREFIX

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


def read_header(data: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked. Raises struct.error when fewer than 61 bytes follow."""
    return BatchHeader._make(HEADER.unpack_from(data, position))
