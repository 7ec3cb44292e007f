"""Whether clients are really answered: one connection to a listener and one request, ApiVersions
(API key 18) version 0, as any client begins."""

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

PATIENCE_S: Final = 1.0
_CLIENT: Final = b"penstock-readyz"
_ID: Final = 18
_REQUEST: Final = struct.pack(">hhih", 18, 0, _ID, len(_CLIENT)) + _CLIENT
ANYWHERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def unanswered(addresses: Sequence[tuple[str, int]], patience_s: float = PATIENCE_S) -> str:
    """Why none of these (host, port) answers; "" when one does. Waits for each of them at most so
    long. addresses: where is listened; any interface is asked by loopback."""
    why = "nobody listens"
    for host, port in addresses:
        try:
            _ask(ANYWHERE.get(host, host), port, patience_s)
        except (OSError, ValueError) as problem:
            why = f"{host}:{port} does not answer: {problem}"
        else:
            return ""
    return why


def _ask(host: str, port: int, patience_s: float) -> None:
    with socket.create_connection((host, port), patience_s) as sock:
        sock.sendall(struct.pack(">i", len(_REQUEST)) + _REQUEST)
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
