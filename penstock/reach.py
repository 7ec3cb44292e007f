"""Whether a broker can be reached, found out by plain connections at once: clients need half a
minute to say less.

Used by the Python client and by every client command.
"""

import socket
import struct
from typing import Final

from penstock.frames import exchange

DEFAULT_PORT: Final = 9092
_LIMIT_S: Final = 3.0
_METADATA: Final = struct.pack(">hhihi", 3, 1, 1, -1, 0)
"""Metadata (API key 3) version 1, no client id, of no topic: the brokers alone."""
_MOST: Final = 1 << 20

Address = tuple[str, int]


def unreachable(bootstrap: str) -> str:
    """Why none of the servers (HOST:PORT, with commas between) accepts a connection; "" when one
    does. Raises ValueError for what is not HOST:PORT."""
    problem = "no server is named"
    for server in bootstrap.split(","):
        try:
            socket.create_connection(address_of(server), _LIMIT_S).close()
        except OSError as refused:
            problem = f"{server.strip()} cannot be reached: {refused.strerror or refused}"
        else:
            return ""
    return problem


def misplaced(bootstrap: str) -> str:
    """Why clients will not find the brokers where these say that they are; "" when they will, or
    when it cannot be known. To be asked of listeners without TLS and SASL."""
    problem = ""
    for server in bootstrap.split(","):
        try:
            told = _brokers(address_of(server))
        except (OSError, ValueError, struct.error):
            continue
        for host, port in told:
            problem = _trouble(host, port)
            if not problem:
                return ""
        if problem:
            return f"{server.strip()} answers, but it says {problem}"
    return ""


def address_of(server: str) -> Address:
    """(host, port) of `[PROTOCOL://]HOST[:PORT]`. Raises ValueError."""
    text = server.strip().rpartition("://")[2]
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(DEFAULT_PORT)
    if not host or " " in host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{server!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _trouble(host: str, port: int) -> str:
    it_is_at = f"it is at {host}:{port}"
    try:
        socket.create_connection((host, port), _LIMIT_S).close()
    except socket.gaierror:
        return f"{it_is_at}, which this host cannot resolve"
    except OSError as refused:
        return f"{it_is_at}, which cannot be reached from here: {refused.strerror or refused}"
    return ""


def _brokers(server: Address) -> list[Address]:
    with socket.create_connection(server, _LIMIT_S) as peer:
        data = exchange(peer, _METADATA, least=8, most=_MOST)
    (count,) = struct.unpack_from(">i", data, 4)
    found, at = [], 8
    for _ in range(count):
        at += 4  # the broker's id
        host, at = _text(data, at)
        (port,) = struct.unpack_from(">i", data, at)
        _, at = _text(data, at + 4)  # its rack
        found.append((host, port))
    return found


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    end = at + 2 + max(0, size)
    return data[at + 2 : end].decode(), end
