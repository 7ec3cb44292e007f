"""Records of `__remote_log_metadata`: segments of a remote store and what becomes of them.

Framed as the records of the metadata log: frame version 1, API key, version, then the fields in
flexible encoding. Ids are 16 bytes, times milliseconds, sizes bytes. Source: KIP-405.
"""

from functools import cache
from typing import Any, ClassVar, Final

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.wire.declared import layout_of, of, record
from appliance.wire.fields import (
    UNREADABLE,
    Reader,
    Writer,
    put_uvarint,
    read_uvarint,
    reader,
    writer,
)

_FRAME_VERSION: Final = 1


@record
class RemoteTopicPartition:
    """Kafka's TopicIdPartitionEntry. name: the topic's."""

    name: str = of("string")
    id: bytes = of("uuid")
    partition: int = of("int32")


@record
class RemoteSegmentId:
    """Kafka's RemoteLogSegmentIdEntry. Each attempt to copy a segment has an id of its own."""

    topic_id_partition: RemoteTopicPartition = of("struct")
    id: bytes = of("uuid")


@record
class SegmentLeaderEpoch:
    """The first offset of an epoch in a segment."""

    leader_epoch: int = of("int32")
    offset: int = of("int64")


@record
class RemoteLogSegmentMetadataRecord:
    """A segment whose copy begins. end_offset: of its last record, inclusive."""

    API_KEY: ClassVar = 0
    VERSIONS: ClassVar = range(1)
    remote_log_segment_id: RemoteSegmentId = of("struct")
    start_offset: int = of("int64")
    end_offset: int = of("int64")
    broker_id: int = of("int32")
    max_timestamp_ms: int = of("int64")
    event_timestamp_ms: int = of("int64")
    segment_leader_epochs: tuple[SegmentLeaderEpoch, ...] = of("[]struct")
    segment_size_in_bytes: int = of("int32")
    custom_metadata: bytes | None = of("bytes", nullable=True)
    remote_log_segment_state: int = of("int8")
    txn_index_empty: bool = of("bool", tag=0, default=False)


@record
class RemoteLogSegmentMetadataUpdateRecord:
    """A segment's next state."""

    API_KEY: ClassVar = 1
    VERSIONS: ClassVar = range(1)
    remote_log_segment_id: RemoteSegmentId = of("struct")
    broker_id: int = of("int32")
    event_timestamp_ms: int = of("int64")
    custom_metadata: bytes | None = of("bytes", nullable=True)
    remote_log_segment_state: int = of("int8")


@record
class RemotePartitionDeleteMetadataRecord:
    """The next state of the deletion of all remote segments of a partition."""

    API_KEY: ClassVar = 2
    VERSIONS: ClassVar = range(1)
    topic_id_partition: RemoteTopicPartition = of("struct")
    broker_id: int = of("int32")
    event_timestamp_ms: int = of("int64")
    remote_partition_delete_state: int = of("int8")


RECORD_TYPES: Final[dict[int, type]] = {
    0: RemoteLogSegmentMetadataRecord,
    1: RemoteLogSegmentMetadataUpdateRecord,
    2: RemotePartitionDeleteMetadataRecord,
}


def encode_record(value: object) -> bytes:
    """The value of the record of `__remote_log_metadata` that carries `value`."""
    cls: Any = type(value)
    out: list[bytes] = []
    put_uvarint(out, _FRAME_VERSION)
    put_uvarint(out, cls.API_KEY)
    put_uvarint(out, cls.VERSIONS[-1])
    _writer(cls, cls.VERSIONS[-1])(out, value)
    return b"".join(out)


def decode_record(value: bytes) -> Any:
    """One of RECORD_TYPES; raises PeerError(CORRUPT_MESSAGE)."""
    try:
        frame, position = read_uvarint(value, 0)
        key, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
        cls: Any = RECORD_TYPES.get(key)
        if frame != _FRAME_VERSION or cls is None or version not in cls.VERSIONS:
            raise ValueError(f"frame {frame}, record type {key}, version {version} is not known")
        found, position = _reader(cls, version)(value, position, [len(value)])
        if position != len(value):
            raise ValueError(f"{len(value) - position} bytes after the end of {cls.__name__}")
    except UNREADABLE as cause:
        raise PeerError(CORRUPT_MESSAGE, f"remote log metadata record: {cause}") from cause
    return found


@cache
def _reader(cls: type, version: int) -> Reader:
    return reader(layout_of(cls, version))


@cache
def _writer(cls: type, version: int) -> Writer:
    return writer(layout_of(cls, version))
