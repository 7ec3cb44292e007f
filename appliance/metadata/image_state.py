"""State of a metadata image, and the parts that two images share.

Invariant: a value that another image may hold is replaced, never edited. A topic's list of
partitions is edited in place as long as one image alone has it (its `owner`), so that a topic of n
partitions costs n steps; the first change after `share_with` copies the list. Everything else is
replaced always. Whoever keeps a part across a change therefore keeps what was true then.
"""

from typing import Final

from appliance.metadata.parts import BrokerImage, ControllerImage, PartitionImage, TopicImage

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""Types of what has settings, as on the wire."""
METADATA_VERSION: Final = "metadata.version"

Entity = tuple[tuple[str, str | None], ...]


class ImageState:
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
        self._owner = object()

    def __eq__(self, other: object) -> bool:
        """True if both hold the same state, offsets included."""
        if not isinstance(other, ImageState):
            return NotImplemented
        mine, others = dict(vars(self)), dict(vars(other))
        del mine["_owner"], others["_owner"]
        return mine == others

    __hash__ = None  # type: ignore[assignment]

    @property
    def metadata_version(self) -> int:
        """Finalized metadata.version (KIP-584), 0 before it is known."""
        return self.features.get(METADATA_VERSION, 0)

    def share_with(self, other: "ImageState") -> None:
        """Let `other` say what this image says now. Costs a copy of the dictionaries, whose values
        both hold from now on."""
        for name, value in vars(self).items():
            if name != "_owner":
                vars(other)[name] = value.copy() if isinstance(value, dict | list) else value
        self.disown()
        other.disown()

    def disown(self) -> None:
        """Another image holds parts of this one: the next change of a topic copies its list."""
        self._owner = object()

    def new_topic(self, name: str, topic_id: bytes) -> None:
        """A topic without partitions. For `replay` alone, as are the next two."""
        topic = TopicImage(name, topic_id, [], self._owner)
        self.topics_by_name[name] = self.topics_by_id[topic_id] = topic

    def editable(self, topic: TopicImage) -> TopicImage:
        """The topic with a list of partitions that no other image has."""
        if topic.owner is not self._owner:
            topic = TopicImage(topic.name, topic.topic_id, list(topic.partitions), self._owner)
            self.topics_by_name[topic.name] = self.topics_by_id[topic.topic_id] = topic
        return topic

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
        """(name, lowest, highest) level that every registered broker supports; what has no level
        but 0 is none, only a word of a registration."""
        common: dict[str, tuple[int, int]] = {}
        for number, broker in enumerate(self.brokers.values()):
            offered = {
                one.name: (one.min_supported_version, one.max_supported_version)
                for one in broker.features
                if one.max_supported_version
            }
            if number == 0:
                common = offered
                continue
            both = {name: (common[name], offered[name]) for name in common if name in offered}
            common = {name: (max(a[0], b[0]), min(a[1], b[1])) for name, (a, b) in both.items()}
        return [(name, low, high) for name, (low, high) in sorted(common.items()) if low <= high]
