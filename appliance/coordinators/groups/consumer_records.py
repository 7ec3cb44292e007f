"""The records of consumer groups (KIP-848) in `__consumer_offsets`, as Kafka 4.3 writes them.

A group is several records: its epoch, its assignment's epoch, and for each member what it told
(metadata), what it is to own (target) and what it owns now (current). All are flexible. Key type 4,
the topics' metadata of Kafka 4.0, is read so that it can be removed; nobody writes its value now.
"""

from typing import ClassVar

from appliance.coordinators.groups.records import RECORDS
from appliance.wire.declared import of, record


@record
class ConsumerGroupMetadataValue:
    """epoch: grows with every change that calls for a new assignment. metadata_hash: of the topics
    subscribed to; another one means that they changed."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0
    epoch: int = of("int32")
    metadata_hash: int = of("int64", tag=0, default=0)


@RECORDS.declare(3, value=ConsumerGroupMetadataValue)
@record
class ConsumerGroupMetadataKey:
    TYPE: ClassVar = 3
    group: str = of("string")


@record
class PartitionRacks:
    partition: int = of("int32")
    racks: tuple[str, ...] = of("[]string")


@record
class TopicMetadata:
    topic_id: bytes = of("uuid")
    name: str = of("string")
    count: int = of("int32")
    racks: tuple[PartitionRacks, ...] = of("[]struct")


@record
class PartitionMetadataValue:
    """Kafka's subscription metadata, written for Kafka and never read: the metadata image says the
    same.
    """

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0
    topics: tuple[TopicMetadata, ...] = of("[]struct")


@RECORDS.declare(4, value=PartitionMetadataValue)
@record
class PartitionMetadataKey:
    TYPE: ClassVar = 4
    group: str = of("string")


@record
class ClassicProtocol:
    name: str = of("string")
    metadata: bytes = of("bytes")


@record
class ClassicMember:
    """The session timeout and protocols from the JoinGroup of a member of the classic protocol."""

    session_timeout: int = of("int32")
    protocols: tuple[ClassicProtocol, ...] = of("[]struct")


@record
class MemberMetadataValue:
    """A member's own description, from its heartbeats. rebalance_timeout: ms."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0
    instance_id: str | None = of("string", nullable=True)
    rack_id: str | None = of("string", nullable=True)
    client_id: str = of("string")
    client_host: str = of("string")
    topic_names: tuple[str, ...] = of("[]string")
    topic_regex: str | None = of("string", nullable=True)
    rebalance_timeout: int = of("int32", default=-1)
    server_assignor: str | None = of("string", nullable=True)
    classic: ClassicMember | None = of("struct", nullable=True, tag=0, default=None)


@RECORDS.declare(5, value=MemberMetadataValue)
@record
class MemberMetadataKey:
    TYPE: ClassVar = 5
    group: str = of("string")
    member: str = of("string")


@record
class TargetMetadataValue:
    """assignment_timestamp: ms, when it was computed."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0
    assignment_epoch: int = of("int32")
    assignment_timestamp: int = of("int64", tag=0, default=0)


@RECORDS.declare(6, value=TargetMetadataValue)
@record
class TargetMetadataKey:
    TYPE: ClassVar = 6
    group: str = of("string")


@record
class TargetPartitions:
    topic_id: bytes = of("uuid")
    partitions: tuple[int, ...] = of("[]int32")


@record
class TargetValue:
    """A member's target assignment."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0
    topics: tuple[TargetPartitions, ...] = of("[]struct")


@RECORDS.declare(7, value=TargetValue)
@record
class TargetKey:
    TYPE: ClassVar = 7
    group: str = of("string")
    member: str = of("string")


@record
class HeldPartitions:
    """assignment_epochs: when each partition was assigned to the member; null: not known."""

    topic_id: bytes = of("uuid")
    partitions: tuple[int, ...] = of("[]int32")
    assignment_epochs: tuple[int, ...] | None = of("[]int32", nullable=True, tag=0, default=None)


@record
class CurrentValue:
    """Where a member stands. previous_epoch: it may not have heard of its newest epoch yet."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0
    epoch: int = of("int32")
    previous_epoch: int = of("int32")
    state: int = of("int8")
    assigned: tuple[HeldPartitions, ...] = of("[]struct")
    revoking: tuple[HeldPartitions, ...] = of("[]struct")


@RECORDS.declare(8, value=CurrentValue)
@record
class CurrentKey:
    TYPE: ClassVar = 8
    group: str = of("string")
    member: str = of("string")


@record
class RegexValue:
    """The topics that a regular expression names. version: offset of the metadata looked at."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0
    topics: tuple[str, ...] = of("[]string")
    version: int = of("int64")
    timestamp: int = of("int64")


@RECORDS.declare(16, value=RegexValue)
@record
class RegexKey:
    TYPE: ClassVar = 16
    group: str = of("string")
    regex: str = of("string")
