"""The exporter's inheritance from the supervisor: a listening socket and the tables. It has no
place in the process table and no ring: nobody asks it anything, and it asks nobody."""

import socket
from collections.abc import Sequence
from typing import Final, NamedTuple

from appliance.base.dataclass import dataclass
from appliance.config import logins
from appliance.config.between_nodes import NUMBERS
from appliance.config.broker import BrokerConfig
from appliance.config.otlp import Target
from appliance.metadata.parts import Endpoint
from appliance.ring.tables import Tables

PLAINTEXT: Final = "PLAINTEXT"
_PROTOCOLS: Final = {number: name for name, number in NUMBERS.items()}


class Address(NamedTuple):
    """Where a listener is bound. listener: its name; protocol: one of `NUMBERS`."""

    host: str
    port: int
    listener: str = ""
    protocol: str = PLAINTEXT

    @property
    def tls(self) -> bool:
        """True if the listener speaks TLS."""
        return self.protocol in ("SSL", logins.SASL_SSL)

    @property
    def logs_in(self) -> bool:
        """True if the listener asks for a login."""
        return self.protocol in logins.PROTOCOLS


def of_endpoint(told: Endpoint) -> Address:
    """As a node has registered it for its clients."""
    return Address(told.host, told.port, told.name, _PROTOCOLS[told.security_protocol])


def addresses(config: BrokerConfig, bound: Sequence[tuple[str, int]]) -> tuple[Address, ...]:
    """Returns the addresses of the client listeners, or else of the controller listeners. bound:
    (host, port) of each listener that is open, by its number."""
    opened = config.endpoints() or config.opened()
    protocols = config.protocols()
    return tuple(
        Address(host, port, one.name, protocols.get(one.name, PLAINTEXT))
        for one, (host, port) in zip(opened, bound, strict=False)
    )


@dataclass(slots=True, frozen=True, kw_only=True)
class Post:
    """listener: bound, listening, non-blocking; None: nobody is to ask. target: to whom all is
    pushed. folders: every log folder, the one with the metadata first. addresses: where clients are
    served, or else controllers. supervisor: its process id. started_ms: of the appliance, by the
    wall clock."""

    config: BrokerConfig
    folders: Sequence[str]
    tables: Tables
    listener: socket.socket | None
    target: Target | None
    addresses: Sequence[Address]
    supervisor: int
    started_ms: int
