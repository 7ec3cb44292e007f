"""How this node connects to brokers and to controllers: in plaintext or in TLS, with a login or
without, by the settings and certificates of the listener by which nodes reach one another.
"""

import socket
from functools import partial
from typing import Final

from appliance.base.clock import Clock
from appliance.certificates.client_certificates import OutgoingCertificates
from appliance.config import between_nodes, node_logins
from appliance.config.broker import BrokerConfig
from appliance.config.logins import PROTOCOLS
from appliance.config.tls_checks import SPEAKING
from appliance.peers.carrier import Carrier, Carry, plain
from appliance.shell.log import WARNING, Log

REFUSED: Final = "node-login-refused"
"""The event of a login at another node that failed."""


def carry_to_brokers(config: BrokerConfig, clock: Clock, log: Log) -> Carry:
    """Returns what makes the carriers of connections to other brokers. config: as this process has
    it; a changed file of certificates, and a changed password, hold from the next connection on.
    log: hears of logins that other nodes refuse."""
    way = between_nodes.to_brokers(config)
    return _carry(way, node_logins.BROKERS, config, clock, log)


def carry_to_controllers(config: BrokerConfig, clock: Clock, log: Log) -> Carry:
    """The same, to the controller listeners of other nodes."""
    way = between_nodes.to_controllers(config)
    return _carry(way, node_logins.CONTROLLERS, config, clock, log)


def _carry(
    way: between_nodes.NodeRoute, setting: str, config: BrokerConfig, clock: Clock, log: Log
) -> Carry:
    """setting: of the mechanism of logins."""
    carry = _in_tls(way, config, clock) if way.protocol in SPEAKING else plain
    return _with_login(carry, way, setting, config, log) if way.protocol in PROTOCOLS else carry


def _in_tls(way: between_nodes.NodeRoute, config: BrokerConfig, clock: Clock) -> Carry:
    certificates = OutgoingCertificates(lambda: config, way.listener, clock)

    def carry(sock: socket.socket, host: str) -> Carrier:
        from appliance.peers.tls import TlsCarrier

        return TlsCarrier(sock, certificates.context(), host)

    return carry


def _with_login(
    below: Carry, way: between_nodes.NodeRoute, setting: str, config: BrokerConfig, log: Log
) -> Carry:
    def failed(host: str, port: int, why: str) -> None:
        where = f"{host}:{port}"
        log.event_from(WARNING, REFUSED, where, listener=way.listener, cause=why)

    def carry(sock: socket.socket, host: str) -> Carrier:
        from appliance.peers.login import LoginCarrier

        credentials = node_logins.credentials(config, setting, way)
        told = partial(failed, host, sock.getpeername()[1])
        client_id = f"penstock-{config.int('node.id')}"
        return LoginCarrier(below(sock, host), credentials, client_id, told)

    return carry
