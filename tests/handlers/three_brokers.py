"""A cluster of three brokers as the network process of broker 1 sees it.

Topic `flights` has a partition for each case: 0 is led here, 1 by broker 2 with a replica here, 2
by broker 3 without one, 3 by nobody. Brokers 2 and 3 have a listener for each client of `PLAINTEXT`
and only broker 2 has one for those of `OUTSIDE`.
"""

from fake_host import FakeHost

from appliance.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from appliance.handlers.exchange import Route
from appliance.wire import kraft_records as kraft
from appliance.wire.kraft_records import BrokerEndpoint

EPOCH = 7
TOPIC_ID = b"f" * 16
LED_HERE, FOLLOWED, ELSEWHERE, BY_NOBODY = range(4)
PORTS = {1: 9092, 2: 9192, 3: 9292}
RACKS = {1: "a", 2: "b", 3: None}
_TOPICS = {
    "flights": (TOPIC_ID, [((1, 2, 3), 1), ((2, 1, 3), 2), ((3, 2), 3), ((2, 3), -1)]),
    OFFSETS_TOPIC: (b"o" * 16, [((n % 3 + 1,), n % 3 + 1) for n in range(6)]),
    TRANSACTIONS_TOPIC: (b"t" * 16, [((n % 3 + 1,), n % 3 + 1) for n in range(6)]),
}


def broker(node_id, *, fenced=False, outside=False, log_dirs=()):
    """Its registration."""
    names = ["PLAINTEXT", "OUTSIDE"] if outside else ["PLAINTEXT"]
    return kraft.RegisterBrokerRecord(
        broker_id=node_id, incarnation_id=bytes(16), broker_epoch=node_id, features=(),
        rack=RACKS[node_id], fenced=fenced, log_dirs=log_dirs,
        end_points=tuple(
            BrokerEndpoint(
                name=name, host=f"node{node_id}.{name.lower()}", port=PORTS[node_id],
                security_protocol=0,
            )
            for name in names
        ),
    )  # fmt: skip


class Cluster(FakeHost):
    """topics: of the image. Routes are those of partitions that broker 1 leads."""

    def __init__(self, *topics, brokers=None):
        super().__init__()
        self.sent = []  # (index, partition) of what coordinators were asked
        records = brokers or [broker(1), broker(2, outside=True), broker(3)]
        for name in topics or ("flights",):
            topic_id, partitions = _TOPICS[name]
            records = [*records, kraft.TopicRecord(name=name, topic_id=topic_id)]
            for index, (replicas, leader) in enumerate(partitions):
                record = kraft.PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=replicas, isr=replicas[:1],
                    leader=leader, leader_epoch=EPOCH, partition_epoch=3,
                    directories=(b"d" * 16,) * len(replicas),
                    eligible_leader_replicas=replicas[1:] if leader < 0 else (),
                )  # fmt: skip
                records.append(record)
        self.apply(*records)

    def apply(self, *records):
        """More of the metadata log."""
        for record in records:
            self.image.apply(self.image.applied_offset + 1, record)

    def _image(self, topic, by_id):
        if by_id:
            return self.image.topics_by_id.get(topic)
        return self.image.topics_by_name.get(topic.decode())

    def route(self, topic, partition, by_id):
        image = self._image(topic, by_id)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        if image.partitions[partition].leader != self.node_id:
            return None
        return Route(partition, 0, image.name, image.topic_id, partition, EPOCH)

    def replica(self, topic, partition, by_id):
        image = self._image(topic, by_id)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        if self.node_id not in image.partitions[partition].replicas:
            return None
        return Route(partition, 0, image.name, image.topic_id, partition, EPOCH)

    def coordinate(self, x, index, route, body):
        x.pending[index] = route.home
        self.sent.append((index, route.partition))
