"""How this node connects to brokers and to controllers: in plaintext, or in TLS with the settings
and certificates of the listener by which nodes reach one another.
"""

import socket

from appliance.base.clock import Clock
from appliance.certificates.outgoing import OutgoingCertificates
from appliance.config import between_nodes
from appliance.config.broker import BrokerConfig
from appliance.config.tls_checks import SSL
from appliance.peers.carrier import Carrier, Carry, plain


def carry_to_brokers(config: BrokerConfig, clock: Clock) -> Carry:
    """Returns what makes the carriers of connections to other brokers. config: as this process has
    it; a changed file of certificates holds from the next connection on."""
    return _carry(between_nodes.to_brokers(config), config, clock)


def carry_to_controllers(config: BrokerConfig, clock: Clock) -> Carry:
    """The same, to the controller listeners of other nodes."""
    return _carry(between_nodes.to_controllers(config), config, clock)


def _carry(way: between_nodes.NodeRoute, config: BrokerConfig, clock: Clock) -> Carry:
    if way.protocol != SSL:
        return plain
    certificates = OutgoingCertificates(lambda: config, way.listener, clock)

    def carry(sock: socket.socket, host: str) -> Carrier:
        from appliance.peers.tls import TlsCarrier

        return TlsCarrier(sock, certificates.context(), host)

    return carry
