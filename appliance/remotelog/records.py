"""Records of `__remote_log_metadata`: segments of a remote store and what becomes of them.

Framed as the records of the metadata log (`wire/framed_records.py`). Ids are 16 bytes, times
milliseconds, sizes bytes. Source: KIP-405.
"""

from typing import ClassVar, Final

from appliance.wire.declared import of, record
from appliance.wire.framed_records import RecordFrames


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

_FRAMES: Final = RecordFrames("remote log metadata record", RECORD_TYPES)
encode_record = _FRAMES.encode
decode_record = _FRAMES.decode
