"""Where a broker takes the requests of other brokers, as it registered."""

from appliance.config.between_nodes import NodeRoute
from appliance.metadata.image_state import ImageState
from appliance.metadata.parts import BrokerImage, Endpoint


def of_peers(broker: BrokerImage | None, way: NodeRoute) -> Endpoint | None:
    """Returns the endpoint of a registered broker by which other brokers reach it, None without
    one. way: how brokers reach one another (`config.between_nodes.to_brokers`)."""
    for one in () if broker is None else broker.endpoints:
        if one.name == way.named or (not way.named and one.security_protocol == way.number):
            return one
    return None


def inter_broker(image: ImageState, node_id: int, way: NodeRoute) -> tuple[str, int] | None:
    """Returns (host, port) of a registered broker, None without one. way: as for `of_peers`."""
    one = of_peers(image.brokers.get(node_id), way)
    return None if one is None else (one.host, one.port)
