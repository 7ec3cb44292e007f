"""The records of classic groups and of committed offsets in `__consumer_offsets`.

Keys of type 0 are offsets as old brokers wrote them. Records of another protocol's groups declare
themselves in `RECORDS` too (`consumer_records`).
"""

from struct import Struct
from typing import ClassVar, Final

from appliance.coordinators.runtime.records import RecordTypes
from appliance.wire.declared import light_record, of, record
from appliance.wire.offset_messages import uvarint

RECORDS: Final = RecordTypes()

_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_KEY_HEAD: Final = Struct(">hh")  # type, bytes of the group's id
_VALUE_HEAD: Final = Struct(">hqi")  # version, offset, leader epoch
_TIME_AND_NO_TAGS: Final = Struct(">qx")
_TIME_AND_ID: Final = Struct(">qBBB16s")  # one tagged field: number 0, 16 bytes
_NO_ID: Final = bytes(16)


@light_record
class OffsetCommitValue:
    """A committed offset. Times are ms since 1970, leader_epoch -1 is unknown.

    Version 1 alone has expire_timestamp; 3 adds leader_epoch, 4 the topic's id (zero: unknown).
    """

    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4
    ONLY_IN: ClassVar = {"expire_timestamp": 1}
    offset: int = of("int64")
    leader_epoch: int = of("int32", since=3, default=-1)
    metadata: str = of("string")
    commit_timestamp: int = of("int64")
    expire_timestamp: int = of("int64", since=1, default=-1)
    topic_id: bytes = of("uuid", since=4, tag=0, default=bytes(16))

    def encode(self) -> bytes:
        """Its bytes in version 4, which Kafka 4.3 writes, by hand."""
        metadata = self.metadata.encode()
        out = _VALUE_HEAD.pack(4, self.offset, self.leader_epoch) + uvarint(len(metadata) + 1)
        if metadata:
            out += metadata
        if self.topic_id == _NO_ID:
            return out + _TIME_AND_NO_TAGS.pack(self.commit_timestamp)
        return out + _TIME_AND_ID.pack(self.commit_timestamp, 1, 0, 16, self.topic_id)


@RECORDS.declare(0, 1, value=OffsetCommitValue)
@light_record
class OffsetCommitKey:
    TYPE: ClassVar = 1
    group: str = of("string")
    topic: str = of("string")
    partition: int = of("int32")

    def encode(self) -> bytes:
        """Its bytes, by hand."""
        group, topic = self.group.encode(), self.topic.encode()
        head = _KEY_HEAD.pack(self.TYPE, len(group)) + group
        return head + _I16.pack(len(topic)) + topic + _I32.pack(self.partition)


@record
class MemberMetadata:
    """rebalance_timeout, session_timeout: ms; the first is -1 in version 0."""

    member_id: str = of("string")
    group_instance_id: str | None = of("string", since=3, nullable=True, default=None)
    client_id: str = of("string")
    client_host: str = of("string")
    rebalance_timeout: int = of("int32", since=1, default=-1)
    session_timeout: int = of("int32")
    subscription: bytes = of("bytes")
    assignment: bytes = of("bytes")


@record
class GroupMetadataValue:
    """A classic group as of a finished rebalance. protocol_type "": none was ever joined."""

    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4
    protocol_type: str = of("string")
    generation: int = of("int32")
    protocol: str | None = of("string", nullable=True)
    leader: str | None = of("string", nullable=True)
    current_state_timestamp: int = of("int64", since=2, default=-1)
    members: tuple[MemberMetadata, ...] = of("[]struct")


@RECORDS.declare(2, value=GroupMetadataValue)
@record
class GroupMetadataKey:
    TYPE: ClassVar = 2
    group: str = of("string")
