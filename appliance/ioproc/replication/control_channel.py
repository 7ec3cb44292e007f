"""An I/O process's view of the other nodes, and its requests to them through control.

Called by `replicas.py`; tests have one of their own.
"""

from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.ioproc.partitions.partition import Partition
from appliance.metadata.follower import Follower
from appliance.metadata.log_dirs import LOST, directory_of
from appliance.replication import isr_change
from appliance.replication.isr_change import IsrChange
from appliance.ring.messages import ISR_CHANGE
from appliance.ring.process_table import CONTROL
from appliance.shell.links import Links

_LAG: Final = "replica.lag.time.max.ms"


class ControlChannel:
    """`replicas.Cluster` over the metadata and the ring to control."""

    __slots__ = ("_follower", "_lag_ms", "_links", "node_id")

    def __init__(self, config: BrokerConfig, follower: Follower, links: Links) -> None:
        self.node_id = config.int("node.id")
        self._lag_ms = config.int(_LAG)
        self._follower = follower
        self._links = links

    def broker_epoch(self, node: int) -> int:
        """As its registration says; -1 of who must not be in sync."""
        broker = self._follower.image.brokers.get(node)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return -1
        return broker.epoch

    def holds(self, partition: Partition, node: int) -> bool:
        """As the node has told the controller; True while nothing is known of the partition."""
        topic = self._follower.image.topics_by_id.get(partition.topic_id)
        return topic is None or directory_of(topic.partitions[partition.index], node) != LOST

    def lag_ms(self) -> int:
        """It cannot be changed while the broker runs, as in Apache Kafka."""
        return self._lag_ms

    def propose(self, partition: Partition, change: IsrChange) -> bool:
        """By ISR_CHANGE; False while control is about to come back."""
        writer = self._links.writer(CONTROL, 0)
        payload = isr_change.encode(change)
        return writer.push_with_payload(ISR_CHANGE, 0, partition.handle, 0, payload=payload)
