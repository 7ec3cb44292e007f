"""The records of classic groups and of committed offsets in `__consumer_offsets`.

Keys of type 0 are offsets as old brokers wrote them. Records of another protocol's groups declare
themselves in `RECORDS` too (`consumer_records`).
"""

from typing import ClassVar, Final

from appliance.coordinators.runtime.records import RecordTypes
from appliance.wire.declared import light_record, of, record

RECORDS: Final = RecordTypes()


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


@RECORDS.declare(0, 1, value=OffsetCommitValue)
@light_record
class OffsetCommitKey:
    TYPE: ClassVar = 1
    group: str = of("string")
    topic: str = of("string")
    partition: int = of("int32")


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
