"""Refuses listeners that other hosts can reach and that serve clients without authentication.

PLAINTEXT asks for nothing, SSL only with `ssl.client.auth=required`; SASL always asks for a login.
Loopback addresses are this host alone. Called by `load.py`, by `kept_listeners.py` for listeners
that are opened while the node serves, and by the controller for changes of `ssl.client.auth`.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config.acl_checks import is_secured
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import EVERYWHERE, LOOPBACK, Endpoint, in_url

SETTING: Final = "penstock.listeners.without.authentication"
ALLOW: Final = "allow"
ALLOWED: Final = f"{SETTING}={ALLOW}"
CLIENT_AUTH: Final = "ssl.client.auth"
COMMANDS: Final = (
    "penstock secure init --host NAME",
    "penstock up --config penstock-secure/server.properties",
    "penstock user add USER --can read:TOPIC --can write:TOPIC > USER.properties",
)
"""Set up TLS, logins and a first user (docs/secure.md)."""


def is_loopback(host: str) -> bool:
    """True if only this host reaches a listener at this host name or address. A name other than
    localhost counts as reachable, because another host may resolve it."""
    if host in EVERYWHERE:
        return False
    name = host.lower().rstrip(".")
    if name in LOOPBACK or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def find_open(config: BrokerConfig, opened: Iterable[Endpoint] | None = None) -> list[Endpoint]:
    """Returns the listeners that other hosts reach without authentication. opened: with the
    addresses that sockets have, None: as the settings say. Raises ConfigError for a listener that
    is not NAME://HOST:PORT."""
    wanted = config.opened() if opened is None else opened
    return [one for one in wanted if _is_open(config, one)]


def check(config: BrokerConfig, opened: Iterable[Endpoint] | None = None) -> Iterator[str]:
    """Raises ConfigError for an open listener that `penstock.listeners.without.authentication` does
    not allow. No warnings. opened: as for `find_open`."""
    if config.text(SETTING) != ALLOW and (found := find_open(config, opened)):
        raise ConfigError(refusal(config, found))
    yield from ()


def asks_its_owner(config: BrokerConfig) -> bool:
    """True if the commands of this host could not do everything without credentials: there are
    ACLs, or no listener for clients at a loopback address serves without authentication."""
    if is_secured(config):
        return True
    protocols = config.protocols()
    return not any(
        protocols.get(one.name) == "PLAINTEXT" and (one.host in EVERYWHERE or is_loopback(one.host))
        for one in config.endpoints()
    )


def refusal(config: BrokerConfig, found: list[Endpoint]) -> str:
    """Returns the error about these open listeners, over several lines."""
    told = " and ".join(f"{one.name}://{in_url(one.host)}:{one.port}" for one in found)
    speaks = any(config.protocols().get(one.name) == "SSL" for one in found)
    lines = (
        f"listeners: other hosts can reach {told} without authentication, and every client"
        " can do everything. These commands set up TLS and logins:",
        *(f"  {one}" for one in COMMANDS),
        *([f"{CLIENT_AUTH}=required serves only clients with a certificate."] if speaks else []),
        f"{ALLOWED} opens it nevertheless, for a network that only you reach",
    )
    return "\n".join(lines)


def _is_open(config: BrokerConfig, one: Endpoint) -> bool:
    if is_loopback(one.host):
        return False
    protocol = config.protocols().get(one.name)
    if protocol == "SSL":
        return config.of_listener(one.name, CLIENT_AUTH) != "required"
    return protocol == "PLAINTEXT"
