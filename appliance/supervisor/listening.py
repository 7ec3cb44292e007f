"""The listening sockets: one per netproc and listener, all on one address by SO_REUSEPORT.

The supervisor opens them before it forks and keeps them, so that a connection made while a netproc
is being replaced waits in the backlog instead of being refused.
"""

import errno
import socket
from typing import Final

from appliance.supervisor.layout import CannotStart, Layout

_LISTEN: Final = "--listen"
_SCRAPERS: Final = 64


class AddressInUse(CannotStart):
    """The address cannot be listened on; the text names it and the remedy."""


class Listeners:
    """Every listening socket: `of[netproc][listener]`; `addresses` are (host, port) as bound."""

    __slots__ = ("addresses", "of")

    def __init__(self, layout: Layout) -> None:
        """Bind and listen. Raises AddressInUse."""
        self.of: list[list[socket.socket]] = [[] for _ in range(layout.netprocs)]
        self.addresses: list[tuple[str, int]] = []
        try:
            for host, port in layout.listeners:
                family, address = _resolve(host, port)
                if port:
                    self._probe(family, address, port)
                for mine in self.of:
                    mine.append(self._listen(family, address, port, layout.backlog))
                    port = mine[-1].getsockname()[1]
                self.addresses.append((host or address, port))
        except BaseException:
            self.close()
            raise

    def close(self, netproc: int | None = None) -> None:
        """Close the supervisor's copies: of one netproc, which is not coming back, or all."""
        for mine in self.of if netproc is None else self.of[netproc : netproc + 1]:
            for one in mine:
                one.close()

    @staticmethod
    def _probe(family: int, host: str, port: int) -> None:
        """With SO_REUSEPORT we would share a port with another process of this user unawares: ask
        without it."""
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as refused:
                raise _unusable(host, port, refused) from None

    @staticmethod
    def _listen(family: int, host: str, port: int, backlog: int) -> socket.socket:
        one = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
            one.bind((host, port))
            one.listen(backlog)
        except OSError as refused:
            one.close()
            raise _unusable(host, port, refused) from None
        return one


def listen_for_scrapers(host: str, port: int) -> socket.socket:
    """The one socket on which metrics are told. Raises AddressInUse."""
    told = "the setting penstock.metrics.listener"
    family, address = _resolve(host, port, told)
    one = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((address, port))
        one.listen(_SCRAPERS)
    except OSError as refused:
        one.close()
        raise _unusable(host, port, refused, told) from None
    return one


def _resolve(host: str, port: int, told: str = _LISTEN) -> tuple[int, str]:
    """(family, numeric address) to bind; no host is every interface, by IPv6 and IPv4 where there
    is both."""
    if not host:
        return (
            (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")
        )
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as unknown:
        raise _unusable(host, port, unknown, told) from None
    # localhost may be ::1 first, but most clients are told 127.0.0.1.
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, str(address[0])


def _unusable(host: str, port: int, refused: OSError, told: str = _LISTEN) -> AddressInUse:
    if refused.errno == errno.EADDRINUSE:
        return AddressInUse(
            f"{host}:{port} is in use by another process: stop that one, or choose another "
            f"port with {told}"
        )
    return AddressInUse(f"{host}:{port} cannot be listened on: {refused.strerror or refused}")
