"""The records of the cluster's metadata log, `__cluster_metadata-0`: classes and their bytes.

A record's value is framed as KRaft does it (framed_records.py; KIP-631). The tables are the classes
themselves: each field says its wire type, since which version it exists and its tag. Ids (uuid) are
16 bytes. Callers: the metadata image, the controller, the log's dump.
"""

from typing import ClassVar, Final

from appliance.wire.declared import light_record, of, record
from appliance.wire.framed_records import RecordFrames


@record
class BrokerEndpoint:
    name: str = of("string")
    host: str = of("string")
    port: int = of("uint16")
    security_protocol: int = of("int16")


@record
class BrokerFeature:
    name: str = of("string")
    min_supported_version: int = of("int16")
    max_supported_version: int = of("int16")


ControllerEndpoint = BrokerEndpoint
ControllerFeature = BrokerFeature


@record
class EntityData:
    entity_type: str = of("string")
    entity_name: str | None = of("string", nullable=True)


@record
class RegisterBrokerRecord:
    """Version 1 adds in_controlled_shutdown, 2 is_migrating_zk_broker, 3 and 4 the directories."""

    API_KEY: ClassVar = 0
    VERSIONS: ClassVar = range(5)
    broker_id: int = of("int32")
    is_migrating_zk_broker: bool = of("bool", since=2, default=False)
    incarnation_id: bytes = of("uuid")
    broker_epoch: int = of("int64")
    end_points: tuple[BrokerEndpoint, ...] = of("[]struct")
    features: tuple[BrokerFeature, ...] = of("[]struct")
    rack: str | None = of("string", nullable=True)
    fenced: bool = of("bool", default=True)
    in_controlled_shutdown: bool = of("bool", since=1, default=False)
    log_dirs: tuple[bytes, ...] = of("[]uuid", since=3, tag=0, default=())
    cordoned_log_dirs: tuple[bytes, ...] | None = of(
        "[]uuid", since=4, tag=1, nullable=True, default=None
    )


@record
class UnregisterBrokerRecord:
    API_KEY: ClassVar = 1
    VERSIONS: ClassVar = range(1)
    broker_id: int = of("int32")
    broker_epoch: int = of("int64")


@record
class TopicRecord:
    API_KEY: ClassVar = 2
    VERSIONS: ClassVar = range(1)
    name: str = of("string")
    topic_id: bytes = of("uuid")


@light_record
class PartitionRecord:
    """Version 1 adds directories (KIP-858), 2 the eligible leader replicas (KIP-966)."""

    API_KEY: ClassVar = 3
    VERSIONS: ClassVar = range(3)
    partition_id: int = of("int32", default=-1)
    topic_id: bytes = of("uuid")
    replicas: tuple[int, ...] = of("[]int32")
    isr: tuple[int, ...] = of("[]int32")
    removing_replicas: tuple[int, ...] = of("[]int32", default=())
    adding_replicas: tuple[int, ...] = of("[]int32", default=())
    leader: int = of("int32", default=-1)
    leader_recovery_state: int = of("int8", tag=0, default=0)
    leader_epoch: int = of("int32", default=-1)
    partition_epoch: int = of("int32", default=-1)
    directories: tuple[bytes, ...] = of("[]uuid", since=1, default=())
    eligible_leader_replicas: tuple[int, ...] | None = of(
        "[]int32", since=2, tag=1, nullable=True, default=None
    )
    last_known_elr: tuple[int, ...] | None = of(
        "[]int32", since=2, tag=2, nullable=True, default=None
    )


@record
class ConfigRecord:
    """resource_type: 2 topic, 4 broker. value None removes the setting."""

    API_KEY: ClassVar = 4
    VERSIONS: ClassVar = range(1)
    resource_type: int = of("int8")
    resource_name: str = of("string")
    name: str = of("string")
    value: str | None = of("string", nullable=True)


@light_record
class PartitionChangeRecord:
    """Changes of a partition: a field that is None (leader: -2, leader_recovery_state: -1) did not
    change.
    """

    API_KEY: ClassVar = 5
    VERSIONS: ClassVar = range(3)
    partition_id: int = of("int32", default=-1)
    topic_id: bytes = of("uuid")
    isr: tuple[int, ...] | None = of("[]int32", tag=0, nullable=True, default=None)
    leader: int = of("int32", tag=1, default=-2)
    replicas: tuple[int, ...] | None = of("[]int32", tag=2, nullable=True, default=None)
    removing_replicas: tuple[int, ...] | None = of("[]int32", tag=3, nullable=True, default=None)
    adding_replicas: tuple[int, ...] | None = of("[]int32", tag=4, nullable=True, default=None)
    leader_recovery_state: int = of("int8", tag=5, default=-1)
    directories: tuple[bytes, ...] | None = of(
        "[]uuid", since=1, tag=8, nullable=True, default=None
    )
    eligible_leader_replicas: tuple[int, ...] | None = of(
        "[]int32", since=2, tag=6, nullable=True, default=None
    )
    last_known_elr: tuple[int, ...] | None = of(
        "[]int32", since=2, tag=7, nullable=True, default=None
    )


@record
class FenceBrokerRecord:
    API_KEY: ClassVar = 7
    VERSIONS: ClassVar = range(1)
    id: int = of("int32")
    epoch: int = of("int64")


@record
class UnfenceBrokerRecord:
    API_KEY: ClassVar = 8
    VERSIONS: ClassVar = range(1)
    id: int = of("int32")
    epoch: int = of("int64")


@record
class RemoveTopicRecord:
    API_KEY: ClassVar = 9
    VERSIONS: ClassVar = range(1)
    topic_id: bytes = of("uuid")


@record
class DelegationTokenRecord:
    """Times in ms since 1970."""

    API_KEY: ClassVar = 10
    VERSIONS: ClassVar = range(1)
    owner: str = of("string")
    requester: str = of("string")
    renewers: tuple[str, ...] = of("[]string")
    issue_timestamp: int = of("int64")
    max_timestamp: int = of("int64")
    expiration_timestamp: int = of("int64")
    token_id: str = of("string")


@record
class UserScramCredentialRecord:
    API_KEY: ClassVar = 11
    VERSIONS: ClassVar = range(1)
    name: str = of("string")
    mechanism: int = of("int8")
    salt: bytes = of("bytes")
    stored_key: bytes = of("bytes")
    server_key: bytes = of("bytes")
    iterations: int = of("int32")


@record
class FeatureLevelRecord:
    """Level 0: the feature is not finalized any more."""

    API_KEY: ClassVar = 12
    VERSIONS: ClassVar = range(1)
    name: str = of("string")
    feature_level: int = of("int16")


@record
class ClientQuotaRecord:
    API_KEY: ClassVar = 14
    VERSIONS: ClassVar = range(1)
    entity: tuple[EntityData, ...] = of("[]struct")
    key: str = of("string")
    value: float = of("float64")
    remove: bool = of("bool")


@record
class ProducerIdsRecord:
    API_KEY: ClassVar = 15
    VERSIONS: ClassVar = range(1)
    broker_id: int = of("int32")
    broker_epoch: int = of("int64", default=-1)
    next_producer_id: int = of("int64")


@record
class BrokerRegistrationChangeRecord:
    """fenced: -1 unfenced, 0 no change, 1 fenced. in_controlled_shutdown: 0 no change, 1 it is."""

    API_KEY: ClassVar = 17
    VERSIONS: ClassVar = range(4)
    broker_id: int = of("int32")
    broker_epoch: int = of("int64")
    fenced: int = of("int8", tag=0, default=0)
    in_controlled_shutdown: int = of("int8", since=1, tag=1, default=0)
    log_dirs: tuple[bytes, ...] = of("[]uuid", since=2, tag=2, default=())
    cordoned_log_dirs: tuple[bytes, ...] | None = of(
        "[]uuid", since=3, tag=3, nullable=True, default=None
    )


@record
class AccessControlEntryRecord:
    API_KEY: ClassVar = 18
    VERSIONS: ClassVar = range(1)
    id: bytes = of("uuid")
    resource_type: int = of("int8")
    resource_name: str = of("string")
    pattern_type: int = of("int8")
    principal: str = of("string")
    host: str = of("string")
    operation: int = of("int8")
    permission_type: int = of("int8")


@record
class RemoveAccessControlEntryRecord:
    API_KEY: ClassVar = 19
    VERSIONS: ClassVar = range(1)
    id: bytes = of("uuid")


@record
class NoOpRecord:
    API_KEY: ClassVar = 20
    VERSIONS: ClassVar = range(1)


@record
class ZkMigrationStateRecord:
    """Only in logs that began under Kafka 3; nothing reads the state any more."""

    API_KEY: ClassVar = 21
    VERSIONS: ClassVar = range(1)
    zk_migration_state: int = of("int8")


@record
class RemoveUserScramCredentialRecord:
    API_KEY: ClassVar = 22
    VERSIONS: ClassVar = range(1)
    name: str = of("string")
    mechanism: int = of("int8")


@record
class BeginTransactionRecord:
    """Opens a metadata transaction (KIP-868)."""

    API_KEY: ClassVar = 23
    VERSIONS: ClassVar = range(1)
    name: str | None = of("string", tag=0, nullable=True, default=None)


@record
class EndTransactionRecord:
    API_KEY: ClassVar = 24
    VERSIONS: ClassVar = range(1)


@record
class AbortTransactionRecord:
    API_KEY: ClassVar = 25
    VERSIONS: ClassVar = range(1)
    reason: str | None = of("string", tag=0, nullable=True, default=None)


@record
class RemoveDelegationTokenRecord:
    API_KEY: ClassVar = 26
    VERSIONS: ClassVar = range(1)
    token_id: str = of("string")


@record
class RegisterControllerRecord:
    API_KEY: ClassVar = 27
    VERSIONS: ClassVar = range(1)
    controller_id: int = of("int32")
    incarnation_id: bytes = of("uuid")
    zk_migration_ready: bool = of("bool", default=False)
    end_points: tuple[ControllerEndpoint, ...] = of("[]struct")
    features: tuple[ControllerFeature, ...] = of("[]struct")


@record
class ClearElrRecord:
    """Forgets the eligible leader replicas of a topic, of all topics for the empty name."""

    API_KEY: ClassVar = 28
    VERSIONS: ClassVar = range(1)
    topic_name: str = of("string")


# Bytes --------------------------------------------------------------------------------------------

RECORD_TYPES: Final[dict[int, type]] = {
    cls.API_KEY: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and hasattr(cls, "API_KEY")
}


_FRAMES: Final = RecordFrames("metadata record", RECORD_TYPES)
encode = _FRAMES.encode
decode = _FRAMES.decode
decode_versioned = _FRAMES.decode_versioned
