"""The brokers of the cluster as a client is told of them: each where the listener that the client
came by is on that node.

This node is told at the address that the client's own socket reached, unless one is advertised: it
is right wherever the client stands. Of the others there is only what they registered; one that has
no listener of that name is not told, as Apache Kafka does. NAME_2 is one more address of NAME
(`penstock up --listen`, and localhost is two): who came by it is told of NAME where there is none.
"""

from appliance.base.owner import LISTENER
from appliance.handlers.exchange import Exchange, Host
from appliance.metadata.parts import BrokerImage, PartitionImage
from appliance.wire.leaders import NodeEndpoint

NOBODY = -1
STILL_TOLD_NS = 5_000_000_000
"""A broker that is gone is told for so long, as one that leads nothing. librdkafka gives up at once
one that is not, with what it has for it, new leaders too, and then looks for those anew a second
later."""


STILL_ISOLATED_NS = 1_000_000_000
"""So long a node that is cut off is told still."""


def living(host: Host, x: Exchange, node_id: int) -> NodeEndpoint | None:
    """Where this broker is; None when it is not registered, fenced, or not to be told of."""
    broker = host.image.brokers.get(node_id)
    return None if broker is None or broker.fenced else endpoint(host, x, broker)


def deserts(host: Host, partition: PartitionImage) -> bool:
    """True if this node led the partition when it was isolated: another one in sync seems to lead
    by now, and only other nodes know which.
    """
    led = partition.leader == host.node_id and len(partition.isr) > 1
    return led and host.processes.isolated_ms > 0


def is_left_out(host: Host, node_id: int) -> bool:
    """True if this node is isolated for long: it counts as fenced, as the others see it. Not at
    once, as with `STILL_TOLD_NS`: clients that know other nodes find the new leaders sooner so. A
    client without others (librdkafka connects to leaders alone) would ask here for ever.
    """
    since_ms = host.processes.isolated_ms
    late = since_ms > 0 and host.now_ns - since_ms * 1_000_000 >= STILL_ISOLATED_NS
    return late and node_id == host.node_id


def just_left(host: Host) -> set[int]:
    """The brokers that were fenced a moment ago."""
    return {node_id for node_id, until_ns in host.left.items() if host.now_ns < until_ns}


def controller(host: Host) -> int:
    """The controller to name to clients, or NOBODY: the leader of the metadata log while it is a
    live broker, else this node; every node forwards what the controller decides.
    """
    brokers = host.image.brokers
    for node_id in (host.processes.leader[0], host.node_id, *sorted(brokers)):
        broker = brokers.get(node_id)
        if broker is not None and not broker.fenced:
            return node_id
    return NOBODY


def endpoint(host: Host, x: Exchange, broker: BrokerImage) -> NodeEndpoint | None:
    """Where the client reaches a broker, fenced or not; None when it is not to be told of."""
    if broker.broker_id == host.node_id:
        return NodeEndpoint(broker.broker_id, *host.reached(x), broker.rack)
    name = x.rights.caller.listener
    if name == LISTENER and broker.endpoints:
        first = broker.endpoints[0]  # no other node has the owner's socket
        return NodeEndpoint(broker.broker_id, first.host, first.port, broker.rack)
    twin, _, number = name.rpartition("_")
    for wanted in (name, twin if number.isdigit() else name):
        for one in broker.endpoints:
            if one.name == wanted:
                return NodeEndpoint(broker.broker_id, one.host, one.port, broker.rack)
    return None
