"""Checks every other second that a job's bootstrap servers accept connections, and that they serve
clients without TLS.
"""

import socket
import ssl
import time
from typing import Final

_PACE_S: Final = 2.0
_LIMIT_S: Final = 1.0


class Reach:
    """Reachability of one job's servers. `bootstrap`: HOST:PORT, several with commas; one of them
    is enough.
    """

    def __init__(self, bootstrap: str) -> None:
        self._servers = [_address(server) for server in bootstrap.split(",")]
        self._looked_s: float | None = None
        self.there = True
        """What the last look found."""

    @property
    def secured(self) -> str:
        """The first of them that speaks TLS, HOST:PORT; "" when none does, or none is there."""
        return next((f"{host}:{port}" for host, port in self._servers if _is_tls(host, port)), "")

    def is_reachable(self) -> bool:
        """True if one of them accepted a connection in the last check, which is repeated when it is
        old. May take a second for each server that does not answer.
        """
        if self._looked_s is None or time.monotonic() - self._looked_s >= _PACE_S:
            self.there = any(map(_accepts, self._servers))
            self._looked_s = time.monotonic()
        return self.there


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _LIMIT_S).close()
    except OSError:
        return False
    return True


def _is_tls(host: str, port: int) -> bool:
    """True if a TLS handshake begins there, however it ends. Sends no data and verifies nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), _LIMIT_S) as plain:
            context.wrap_socket(plain).close()
    except ssl.SSLError as told:
        return "_ALERT_" in str(told.reason or "")  # who says no in TLS's own words speaks it
    except OSError:
        return False
    return True


def _address(server: str) -> tuple[str, int]:
    """HOST:PORT, with or without PROTOCOL:// before it."""
    host, _, port = server.strip().rpartition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)
