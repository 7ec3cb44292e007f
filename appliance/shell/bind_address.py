"""Where a listener is bound, and whether it can be: asked by the supervisor before it opens one,
and by control before it promises that one will be.
"""

import errno
import socket
from collections.abc import Collection


def resolve(host: str, port: int) -> tuple[int, str]:
    """(family, numeric address) to bind; no host is every interface, by IPv6 and IPv4 where there
    is both. Raises OSError."""
    if not host:
        return (
            (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")
        )
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # localhost may be ::1 first, but most clients are told 127.0.0.1.
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, str(address[0])


def probe(family: int, host: str, port: int) -> None:
    """With SO_REUSEPORT we would share a port with another process of this user unawares: ask
    without it. Raises OSError."""
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((host, port))


def why_not(host: str, port: int, own: Collection[int]) -> str:
    """Why there can be no listener at host:port, "" when there can. own: ports at which this
    appliance listens: one of them may be taken at more addresses."""
    try:
        family, address = resolve(host, port)
        if port not in own:
            probe(family, address, port)
    except OSError as refused:
        if refused.errno == errno.EADDRINUSE:
            return f"{host}:{port} is in use by another process: stop that one, or choose another"
        return f"{host}:{port} cannot be listened on: {refused.strerror or refused}"
    return ""
