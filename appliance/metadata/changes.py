"""Changes made by one replayed record, for shells that open and close logs and keep caches.

A change names things; what they are now is read from the image.
"""

from dataclasses import field

from appliance.base.dataclass import dataclass
from appliance.metadata.parts import PartitionImage, TopicImage


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
    """Leader, in-sync replicas or assignment of a partition changed. grown: by how many more
    replicas are in sync. elected: it has another leader now. unclean: that leader was neither in
    sync nor eligible. The last three are for counting."""

    name: str
    topic_id: bytes
    index: int
    grown: int = field(default=0, compare=False)
    elected: bool = field(default=False, compare=False)
    unclean: bool = field(default=False, compare=False)


def partition_changed(
    topic: TopicImage, index: int, old: PartitionImage, new: PartitionImage
) -> PartitionChanged:
    """The change of a partition of a topic from one state to another."""
    elected = new.leader >= 0 and new.leader != old.leader
    able = old.isr + old.eligible_leader_replicas
    return PartitionChanged(
        topic.name,
        topic.topic_id,
        index,
        len(new.isr) - len(old.isr),
        elected,
        elected and new.leader not in able,
    )


@dataclass(slots=True, frozen=True)
class TopicRemoved:
    """The topic with this id is gone with all its partitions (0 … partitions - 1)."""

    name: str
    topic_id: bytes
    partitions: int


@dataclass(slots=True, frozen=True)
class ConfigChanged:
    """A dynamic setting was set or removed.

    resource_type: TOPIC or BROKER; the resource_name "" of BROKER is the cluster-wide default.
    """

    resource_type: int
    resource_name: str
    key: str


@dataclass(slots=True, frozen=True)
class BrokerChanged:
    """A broker was registered, fenced, unfenced, changed or removed."""

    broker_id: int


@dataclass(slots=True, frozen=True)
class ControllerChanged:
    """A controller was registered."""

    controller_id: int


@dataclass(slots=True, frozen=True)
class FeatureChanged:
    """A finalized feature has a new level; 0 means it is not finalized any more."""

    name: str
    level: int


@dataclass(slots=True, frozen=True)
class QuotaChanged:
    """A client quota was set or removed. entity: (type, name or None for the default) pairs."""

    entity: tuple[tuple[str, str | None], ...]


@dataclass(slots=True, frozen=True)
class ProducerIdsTaken:
    """A block of producer ids was taken; the next one begins with `next_producer_id`."""

    next_producer_id: int


@dataclass(slots=True, frozen=True)
class KeptChanged:
    """A record about users, access control or tokens came or went."""

    identity: tuple[str, ...]


Change = (
    TopicAdded
    | PartitionAdded
    | PartitionChanged
    | TopicRemoved
    | ConfigChanged
    | BrokerChanged
    | ControllerChanged
    | FeatureChanged
    | QuotaChanged
    | ProducerIdsTaken
    | KeptChanged
)
