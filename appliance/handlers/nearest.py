"""Which replicas stand where a consumer stands (KIP-392): what a leader offers who says its rack.

The metadata knows racks, and who is in sync; how far each of them is knows the partition's home
(READ_NEAREST), which chooses. Kafka's RackAwareReplicaSelector, by name; every other choice is the
leader.
"""

from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.handlers import nodes
from appliance.handlers.exchange import Exchange, Host, Route

BY_RACK: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
MOST: Final = 4
"""So many of a rack are offered: as many as a message names."""
_NOBODY: Final = -1

Nodes = tuple[int, int, int, int]
"""Node ids, -1: no more."""


def rack_of(config: BrokerConfig) -> bytes | None:
    """Where this node stands, empty: not said; None: consumers read from leaders alone."""
    if config.get_value("replica.selector.class") != BY_RACK:
        return None
    return str(config.get_value("broker.rack") or "").encode()


def in_rack(host: Host, x: Exchange, route: Route, rack: bytes) -> Nodes | None:
    """Replicas of a partition that this node leads: in sync, in that rack and to be reached by the
    client's listener. None: there is none, or another node leads."""
    image = host.image
    topic = image.topics_by_id.get(route.topic_id)
    if topic is None:
        return None
    partition = topic.partitions[route.partition]
    if partition.leader != host.node_id:
        return None
    name = rack.decode("utf-8", "replace")
    found = []
    for node_id in partition.isr:
        broker = image.brokers.get(node_id)
        if broker is None or node_id == host.node_id or broker.rack != name or broker.fenced:
            continue
        if nodes.endpoint(host, x, broker) is not None:
            found.append(node_id)
    if not found:
        return None
    first, second, third, fourth, *_ = *found, *[_NOBODY] * MOST
    return first, second, third, fourth
