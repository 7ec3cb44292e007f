"""Which partitions of this I/O process are throttled while replicas catch up, and how fast they may
be (KIP-73): from the metadata, whenever it may be another answer.

A node's limit is shared out among its I/O processes by how many replicas each has that are
throttled and not in sync, so that together they are as fast as was asked for, and one partition
alone is too. Each finds that by itself from the same metadata. Called by `metadata_replay.py`.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from appliance.base.home import home_of
from appliance.config.broker import BrokerConfig
from appliance.metadata.changes import Change, ConfigChanged, PartitionChanged, TopicRemoved
from appliance.metadata.effective import broker_config
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.metadata.parts import PartitionImage
from appliance.replication.throttle import Key, ReplicationThrottle

UNLIMITED: Final = (1 << 63) - 1
_ALL: Final = "*"
_NAMED: Final = "replication.throttled"  # in the keys of all these settings

Indexes = Collection[int] | None
"""Of the partitions of a topic, None: all of them."""

Late = Callable[[PartitionImage], int]
"""How many replicas are not in sync that this node sends to, or fetches."""


class ReplicationThrottling:
    """leader: of what is sent to followers. follower: of what is fetched from leaders."""

    def __init__(self, config: BrokerConfig, me: int, ioprocs: int) -> None:
        """me: the number of this I/O process."""
        self.leader = ReplicationThrottle()
        self.follower = ReplicationThrottle()
        self._config = config
        self._node_id = config.int("node.id")
        self._me = me
        self._ioprocs = ioprocs
        self._limited = False  # whether there is a limit and a list

    def follow(self, image: MetadataImage, changes: list[Change]) -> None:
        """The metadata changed so."""
        for change in changes:
            if isinstance(change, ConfigChanged):
                found = _NAMED in change.key
            else:
                found = self._limited and isinstance(change, PartitionChanged | TopicRemoved)
            if found:
                self.read_settings(image)
                return

    def read_settings(self, image: MetadataImage) -> None:
        """Reads the throttle settings now in force."""
        config = broker_config(image, self._config)
        limited = self._set(image, config, self.leader, "leader", self._led_late)
        limited |= self._set(image, config, self.follower, "follower", self._followed_late)
        self._limited = limited

    def _set(
        self,
        image: MetadataImage,
        config: BrokerConfig,
        side: ReplicationThrottle,
        name: str,
        late: Late,
    ) -> bool:
        rate = config.int(f"{name}.replication.throttled.rate")
        every = mine = 0
        keys: list[Key] = []
        listed = False
        for topic_id, indexes in self._listed(image, name) if rate < UNLIMITED else ():
            listed = True
            for index, partition in enumerate(image.topics_by_id[topic_id].partitions):
                count = late(partition) if indexes is None or index in indexes else 0
                every += count
                if count and home_of(topic_id, index, self._ioprocs) == self._me:
                    mine += count
                    keys.append((topic_id, index))
        side.set(rate * mine / every if mine else 0.0, keys)
        return listed

    def _listed(self, image: MetadataImage, name: str) -> Iterator[tuple[bytes, Indexes]]:
        """Topics with throttled replicas on this node."""
        key = f"{name}.replication.throttled.replicas"
        for topic in image.topics_by_name.values():
            text = image.config(TOPIC, topic.name).get(key)
            if text:
                yield topic.topic_id, replicas_of(text, self._node_id)

    def _led_late(self, partition: PartitionImage) -> int:
        if partition.leader != self._node_id:
            return 0
        return sum(one not in partition.isr for one in partition.replicas)

    def _followed_late(self, partition: PartitionImage) -> int:
        here = self._node_id in partition.replicas and partition.leader != self._node_id
        return int(here and self._node_id not in partition.isr)


def replicas_of(text: str, node_id: int) -> Indexes:
    """The partitions that a list of PARTITION:NODE names for a node, or `*`: all."""
    found = []
    for one in text.split(","):
        partition, _, node = one.strip().partition(":")
        if partition == _ALL:
            return None
        if partition.isdigit() and node == str(node_id):
            found.append(int(partition))
    return frozenset(found)
