"""A probe of a listener: one connection and one request, ApiVersions (API key 18) version 0, as any
client begins.

A listener without login and TLS is asked first; ApiVersions needs no login. Over TLS nothing is
verified: a node looks at its own host. Where only clients with a certificate are served, that it
asks for one is answer enough.
"""

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from appliance.exporter.post import Address
from appliance.observer.shown import ANYWHERE, asks_for_certificate, send_all, wrapped

PATIENCE_S: Final = 1.0
_CLIENT: Final = b"penstock-readyz"
_ID: Final = 18
_REQUEST: Final = struct.pack(">hhih", 18, 0, _ID, len(_CLIENT)) + _CLIENT


def unanswered(addresses: Sequence[Address], patience_s: float = PATIENCE_S) -> str:
    """Why none of these answers; "" when one does. Waits for each of them at most so long.
    addresses: where is listened; any interface is asked by loopback."""
    why = "nobody listens"
    for one in plain_first(addresses):
        try:
            _ask(one, patience_s)
        except OSError as problem:
            if one.tls and asks_for_certificate(problem):
                return ""
            why = f"{one.host}:{one.port} does not answer: {problem}"
        except ValueError as problem:
            why = f"{one.host}:{one.port} does not answer: {problem}"
        else:
            return ""
    return why


def plain_first(addresses: Sequence[Address]) -> list[Address]:
    """In the order in which we ask ourselves."""
    return sorted(addresses, key=lambda one: (one.logs_in, one.tls))


def _ask(where: Address, patience_s: float) -> None:
    host = ANYWHERE.get(where.host, where.host)
    with socket.create_connection((host, where.port), patience_s) as plain:
        sock = wrapped(plain) if where.tls else plain
        with sock:
            _exchange(sock)


def _exchange(sock: socket.socket) -> None:
    send_all(sock, struct.pack(">i", len(_REQUEST)) + _REQUEST)
    told = b""
    while len(told) < 10:
        part = sock.recv(1024)
        if not part:
            raise ValueError("it hung up")
        told += part
    _, number, error = struct.unpack_from(">iih", told)
    if number != _ID or error:
        raise ValueError(f"error {error}")
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
