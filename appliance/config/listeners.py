"""Listener texts, NAME://HOST:PORT, and the voters of a quorum, ID@HOST:PORT."""

import re
from typing import Final, NamedTuple

from appliance.base.dataclass import dataclass
from appliance.base.errors import ConfigError

EVERYWHERE: Final = ("", "0.0.0.0", "::")
"""Hosts that stand for every interface: one can listen there, and nobody can connect to them."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
"""Hosts that are another one to everybody."""
_SHAPE = re.compile(r"(?:([A-Za-z0-9_.-]+)://)?(?:\[([0-9A-Fa-f:.]+)\]|([^:/\[\]]*)):(\d+)")
_VOTER = re.compile(r"(\d+)@(?:\[([0-9A-Fa-f:.]+)\]|([^:/@\[\]]+)):(\d+)")


@dataclass(slots=True, frozen=True)
class Endpoint:
    """One listener. An empty host is every interface; port 0 any free port."""

    name: str
    host: str
    port: int


def parse_endpoint(key: str, text: str) -> Endpoint:
    """`[NAME://]HOST:PORT`, an IPv6 address in brackets. Raises ConfigError naming `key`."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None or int(match[4]) > 65535:
        named = key.endswith("listeners")
        shape, name = ("NAME://HOST:PORT", "PLAINTEXT://") if named else ("HOST:PORT", "")
        raise ConfigError(
            f"Invalid value {text!r} for configuration {key}: it takes {shape} with a port from 0"
            f" to 65535, for example {name}localhost:9092"
        )
    return Endpoint((match[1] or "PLAINTEXT").upper(), match[2] or match[3] or "", int(match[4]))


def in_url(host: str) -> str:
    """A host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


class StaticVoter(NamedTuple):
    """A controller of a static quorum, and where its controller listener is reached."""

    node_id: int
    host: str
    port: int


def parse_voter(key: str, text: str) -> StaticVoter:
    """`ID@HOST:PORT`. Raises ConfigError naming `key`."""
    match = _VOTER.fullmatch(text.strip())
    if match is None or not 0 < int(match[4]) <= 65535:
        raise ConfigError(
            f"Invalid value {text!r} for configuration {key}: it takes ID@HOST:PORT, for example"
            " 1@localhost:9093"
        )
    return StaticVoter(int(match[1]), match[2] or match[3], int(match[4]))
