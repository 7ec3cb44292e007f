"""Where every partition lives that this node leads, looked up once per partition and image, and its
replicas of others.

A partition that another node leads has no route but for who may be served by any replica: nothing
else is asked of its home here, and who asks for it pays for looking into the image
(`handlers/gather.absent`).
"""

from appliance.base.home import home_of
from appliance.handlers.exchange import Route
from appliance.metadata.image import MetadataImage, TopicImage


class PartitionRoutes:
    """A cache over an image; `clear` it when the image has changed. by_name, by_id: what is known,
    for who looks there first; the same two for ever."""

    def __init__(
        self,
        image: MetadataImage,
        handles: dict[tuple[bytes, int], int],
        ioprocs: int,
        node_id: int,
    ) -> None:
        self._image = image
        self._handles = handles
        self._ioprocs = ioprocs
        self._node_id = node_id
        self.by_name: dict[tuple[bytes, int], Route] = {}
        self.by_id: dict[tuple[bytes, int], Route] = {}
        self._replicas: dict[tuple[bytes, int, bool], Route] = {}

    def clear(self, image: MetadataImage, handles: dict[tuple[bytes, int], int]) -> None:
        """Start again from this image and these rows of the partition table."""
        self._image = image
        self._handles = handles
        self.by_name.clear()
        self.by_id.clear()
        self._replicas.clear()

    def find_route(self, topic: bytes, partition: int, by_id: bool) -> Route | None:
        """The route of a partition that this node leads; `topic` is a name in UTF-8 or, by_id, the
        16 bytes of a topic id."""
        cache = self.by_id if by_id else self.by_name
        found = cache.get((topic, partition))
        if found is None:
            found = self._find(topic, partition, by_id, led=True)
            if found is not None:
                cache[topic, partition] = found
        return found

    def replica(self, topic: bytes, partition: int, by_id: bool) -> Route | None:
        """The route to this node's replica of a partition, whoever leads it."""
        found = self._replicas.get((topic, partition, by_id))
        if found is None:
            found = self._find(topic, partition, by_id, led=False)
            if found is not None:
                self._replicas[topic, partition, by_id] = found
        return found

    def _find(self, topic: bytes, partition: int, by_id: bool, led: bool) -> Route | None:
        image: TopicImage | None
        if by_id:
            image = self._image.topics_by_id.get(topic)
        else:
            image = self._image.topics_by_name.get(topic.decode("utf-8", "replace"))
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        found = image.partitions[partition]
        handle = self._handles.get((image.topic_id, partition))
        if handle is None or (led and found.leader != self._node_id):
            return None
        home = home_of(image.topic_id, partition, self._ioprocs)
        return Route(handle, home, image.name, image.topic_id, partition, found.leader_epoch)
