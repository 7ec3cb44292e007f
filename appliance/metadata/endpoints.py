"""Where a broker takes the requests of other brokers, as it registered."""

from typing import Final

from appliance.metadata.image_state import ImageState
from appliance.metadata.parts import BrokerImage, Endpoint

PLAINTEXT: Final = 0
"""The security protocol that nodes speak with one another, as registrations number them."""


def of_peers(broker: BrokerImage | None, listener: str | None) -> Endpoint | None:
    """The endpoint of a registered broker; None when it has none. listener: its name
    (inter.broker.listener.name), None: the first one that speaks plaintext."""
    for one in () if broker is None else broker.endpoints:
        if one.name == listener or (not listener and one.security_protocol == PLAINTEXT):
            return one
    return None


def inter_broker(image: ImageState, node_id: int, listener: str | None) -> tuple[str, int] | None:
    """(host, port) of a registered broker; None when it is none. listener: as for `of_peers`."""
    one = of_peers(image.brokers.get(node_id), listener)
    return None if one is None else (one.host, one.port)
