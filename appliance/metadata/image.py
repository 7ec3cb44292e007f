"""The state that replaying the cluster's metadata records gives.

Invariant: nothing but `apply` changes an image, so two images that saw the same records in the same
order are equal. Records between BeginTransactionRecord and EndTransactionRecord (KIP-868) count
together or not at all. Control owns one image, the network and I/O processes each follow the log
into their own; they read the public attributes and act on the changes that `apply` returns.
"""

from typing import Final

from appliance.metadata.changes import BrokerChanged as BrokerChanged
from appliance.metadata.changes import Change
from appliance.metadata.changes import ConfigChanged as ConfigChanged
from appliance.metadata.changes import FeatureChanged as FeatureChanged
from appliance.metadata.changes import PartitionAdded as PartitionAdded
from appliance.metadata.changes import PartitionChanged as PartitionChanged
from appliance.metadata.changes import QuotaChanged as QuotaChanged
from appliance.metadata.changes import TopicAdded as TopicAdded
from appliance.metadata.changes import TopicRemoved as TopicRemoved
from appliance.metadata.parts import BrokerImage as BrokerImage
from appliance.metadata.parts import ControllerImage as ControllerImage
from appliance.metadata.parts import Endpoint as Endpoint
from appliance.metadata.parts import Feature as Feature
from appliance.metadata.parts import PartitionImage as PartitionImage
from appliance.metadata.parts import TopicImage as TopicImage
from appliance.metadata.replay import replay

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""Types of what has settings, as on the wire."""
METADATA_VERSION: Final = "metadata.version"

Entity = tuple[tuple[str, str | None], ...]


class MetadataImage:
    """The replayed cluster. Read the attributes, never write them.

    topics_by_name, topics_by_id: the same TopicImages by name and by 16-byte id.
    configs: (resource type, resource name) → {key: value}, only what was set dynamically.
    features: finalized levels, `metadata.version` among them.
    next_producer_id: first id of the next block that nobody was given yet.
    quotas: entity → {key: value}.
    kept: records of users, access control and tokens, by identity, as they came.
    applied_offset, epoch: of the newest record replayed, -1 before the first one.
    skipped: how many records were of a type that nobody here knows.
    """

    def __init__(self) -> None:
        self.topics_by_name: dict[str, TopicImage] = {}
        self.topics_by_id: dict[bytes, TopicImage] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, ControllerImage] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.kept: dict[tuple[str, ...], object] = {}
        self.applied_offset = -1
        self.epoch = -1
        self.skipped = 0
        self.pending: list[object] | None = None  # records of a metadata transaction under way

    @property
    def metadata_version(self) -> int:
        """Finalized metadata.version (KIP-584), 0 before it is known."""
        return self.features.get(METADATA_VERSION, 0)

    def frozen(self) -> "MetadataImage":
        """This image as it is now, however the cluster changes: its parts are shared, because a
        part is replaced and never edited."""
        assert self.pending is None, "not in the middle of a metadata transaction"
        view = MetadataImage()
        for topic in self.topics_by_name.values():
            copy = TopicImage(topic.name, topic.topic_id, list(topic.partitions))
            view.topics_by_name[copy.name] = view.topics_by_id[copy.topic_id] = copy
        view.configs = {key: dict(settings) for key, settings in self.configs.items()}
        view.quotas = {key: dict(quotas) for key, quotas in self.quotas.items()}
        view.brokers, view.controllers = dict(self.brokers), dict(self.controllers)
        view.features, view.kept = dict(self.features), dict(self.kept)
        view.next_producer_id = self.next_producer_id
        view.applied_offset, view.epoch = self.applied_offset, self.epoch
        view.skipped = self.skipped
        return view

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """The partition, or None when the topic or the partition does not exist."""
        found = self.topics_by_name.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def config(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """The dynamic settings of a resource; empty when none is set."""
        return self.configs.get((resource_type, resource_name), {})

    def supported_features(self) -> list[tuple[str, int, int]]:
        """(name, lowest, highest) level that every registered broker supports."""
        common: dict[str, tuple[int, int]] = {}
        for number, broker in enumerate(self.brokers.values()):
            offered = {
                one.name: (one.min_supported_version, one.max_supported_version)
                for one in broker.features
            }
            if number == 0:
                common = offered
                continue
            both = {name: (common[name], offered[name]) for name in common if name in offered}
            common = {name: (max(a[0], b[0]), min(a[1], b[1])) for name, (a, b) in both.items()}
        return [(name, low, high) for name, (low, high) in sorted(common.items()) if low <= high]

    def apply(self, offset: int, record: object) -> list[Change]:
        """Replay one record of the metadata log and say what changed.

        offset: of the record in the log. A record of an unknown type is counted in `skipped` and
        changes nothing. Raises ReplayFailed when the record contradicts the image.
        """
        changes = replay(self, record)
        self.applied_offset = offset
        return changes
