"""The state that replaying the cluster's metadata records gives.

Invariant: nothing but `apply` changes an image, so two images that saw the same records in the same order are equal.
Records between BeginTransactionRecord and EndTransactionRecord (KIP-868) count together or not at all. Control
owns one image, the network and I/O processes each follow the log into their own; the shells read the public
attributes and act on the changes that `apply` returns.
"""

from dataclasses import dataclass, field
from typing import Final

TOPIC: Final = 2
BROKER: Final = 4
METADATA_VERSION: Final = "metadata.version"


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionImage:
    """One partition. leader is -1 when it has none; directories are 16-byte ids in the order of replicas."""

    index: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(slots=True)
class TopicImage:
    """One topic: `partitions[i].index == i`, without holes."""

    name: str
    topic_id: bytes
    partitions: list[PartitionImage] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Endpoint:
    """One advertised listener. security_protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(slots=True, frozen=True, kw_only=True)
class BrokerImage:
    """One registered broker; `features` maps a name to its supported (min, max) level."""

    broker_id: int
    incarnation_id: bytes
    epoch: int
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, int, int], ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class ControllerImage:
    """One registered controller."""

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, int, int], ...] = ()


# What changed, in the order in which it did ---------------------------------------------------------


@dataclass(slots=True, frozen=True)
class TopicAdded:
    """A topic exists now; its partitions follow, one PartitionAdded each."""

    name: str
    topic_id: bytes


@dataclass(slots=True, frozen=True)
class PartitionAdded:
    """Partition `index` of the topic exists now."""

    name: str
    topic_id: bytes
    index: int


@dataclass(slots=True, frozen=True)
class PartitionChanged:
    """Leader, in-sync replicas or assignment of a partition changed."""

    name: str
    topic_id: bytes
    index: int


@dataclass(slots=True, frozen=True)
class TopicRemoved:
    """The topic with this id is gone with all its partitions (0 … partitions - 1)."""

    name: str
    topic_id: bytes
    partitions: int


@dataclass(slots=True, frozen=True)
class ConfigChanged:
    """A dynamic setting was set or removed. resource_type: TOPIC or BROKER (name "" is the cluster default)."""

    resource_type: int
    resource_name: str
    key: str


@dataclass(slots=True, frozen=True)
class BrokerChanged:
    """A broker was registered, fenced, unfenced, changed or removed."""

    broker_id: int


@dataclass(slots=True, frozen=True)
class FeatureChanged:
    """A finalized feature has a new level; 0 means it is not finalized any more."""

    name: str
    level: int


@dataclass(slots=True, frozen=True)
class QuotaChanged:
    """A client quota was set or removed. entity: (type, name or None for the default) pairs."""

    entity: tuple[tuple[str, str | None], ...]


Change = (
    TopicAdded
    | PartitionAdded
    | PartitionChanged
    | TopicRemoved
    | ConfigChanged
    | BrokerChanged
    | FeatureChanged
    | QuotaChanged
)


class MetadataImage:
    """The replayed cluster. Read the attributes, never write them.

    topics, topic_ids: the same TopicImages by name and by 16-byte id.
    configs: (resource type, resource name) → {key: value}, only what was set dynamically.
    features: finalized levels, `metadata.version` among them.
    next_producer_id: first id of the next block that nobody was given yet.
    quotas: entity → {key: value}.
    applied_offset, epoch: of the newest record replayed, -1 before the first one.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topic_ids: dict[bytes, TopicImage] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, ControllerImage] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.applied_offset = -1
        self.epoch = -1
        self.skipped = 0

    @property
    def metadata_version(self) -> int:
        """Finalized metadata.version (KIP-584), 0 before it is known."""
        return self.features.get(METADATA_VERSION, 0)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """The partition, or None when the topic or the partition does not exist."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def config(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """The dynamic settings of a resource; empty when none is set."""
        return self.configs.get((resource_type, resource_name), {})

    def apply(self, offset: int, record: object) -> list[Change]:
        """Replay one record of the metadata log and say what changed.

        offset: of the record in the log. A record of an unknown type is counted in `skipped` and changes nothing.
        """
        self.applied_offset = offset
        return []
