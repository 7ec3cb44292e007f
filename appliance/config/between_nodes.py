"""Which listener, and so which protocol, nodes of a cluster reach one another by."""

from typing import NamedTuple

from appliance.config.broker import BrokerConfig

NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Security protocols as registrations number them (KIP-631, BrokerRegistration)."""


class NodeRoute(NamedTuple):
    """How nodes of one role are reached. listener: whose settings hold. named: another broker is
    asked for by this name of its listener; "": by its first listener of the protocol."""

    listener: str
    protocol: str
    named: str = ""

    @property
    def number(self) -> int:
        """The protocol as registrations number it; -1 for one that there is not."""
        return NUMBERS.get(self.protocol, -1)


def to_brokers(config: BrokerConfig) -> NodeRoute:
    """inter.broker.listener.name, else security.inter.broker.protocol, as in Apache Kafka."""
    protocols = config.protocols()
    name = config.get_value("inter.broker.listener.name")
    if name:
        listener = str(name).upper()
        return NodeRoute(listener, protocols.get(listener, ""), listener)
    protocol = config.text("security.inter.broker.protocol").upper()
    own = (one.name for one in config.endpoints() if protocols.get(one.name) == protocol)
    return NodeRoute(next(own, protocol), protocol)


def to_controllers(config: BrokerConfig) -> NodeRoute:
    """The first of controller.listener.names."""
    name = config.list("controller.listener.names")[0].strip().upper()
    return NodeRoute(name, config.protocols().get(name, "PLAINTEXT"), name)
