"""Where a broker takes the requests of other brokers, as it registered."""

from appliance.metadata.image_state import ImageState


def inter_broker(image: ImageState, node_id: int, listener: str | None) -> tuple[str, int] | None:
    """(host, port) of a registered broker; None when it is none. listener: its name
    (inter.broker.listener.name), None: the first one."""
    broker = image.brokers.get(node_id)
    for one in () if broker is None else broker.endpoints:
        if listener in (None, one.name):
            return one.host, one.port
    return None
