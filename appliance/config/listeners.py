"""Listener texts: NAME://HOST:PORT."""

import re
from dataclasses import dataclass

from appliance.base.errors import ConfigError

_SHAPE = re.compile(r"(?:([A-Za-z0-9_.-]+)://)?(?:\[([0-9A-Fa-f:.]+)\]|([^:/\[\]]*)):(\d+)")


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
        raise ConfigError(
            f"Invalid value {text!r} for configuration {key}: it takes NAME://HOST:PORT with a"
            " port from 0 to 65535, for example PLAINTEXT://localhost:9092"
        )
    return Endpoint((match[1] or "PLAINTEXT").upper(), match[2] or match[3] or "", int(match[4]))
