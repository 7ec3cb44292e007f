"""Carriers: what moves the bytes of a connection to another node, and one that moves them over TCP
as they are.

A carrier is made once TCP is connected. It may have a handshake of its own, which `do_handshake`
goes on with; `wants` says what that waits for. Nothing here waits.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from appliance.base.compiled import mypyc_attr

BLOCKED: Final = -1
"""Nothing moved: the socket is not ready."""
ENDED: Final = 0
"""The peer sends nothing more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Carrier(ABC):
    """Moves the bytes of one connection. wants: EPOLLIN or EPOLLOUT while the handshake waits for
    it. buffered: more can be received at once, whatever the socket shows. lifetime_ms: how long
    the connection serves from the end of its handshake on; 0: for ever. Every method may raise
    OSError: the connection is over then."""

    def __init__(self, sock: socket.socket) -> None:
        """sock: connected and non-blocking; the carrier owns it."""
        self.sock = sock
        self.wants = 0
        self.buffered = False
        self.lifetime_ms = 0

    @abstractmethod
    def do_handshake(self) -> bool:
        """Goes on with the handshake; True when it is over."""
        ...

    @abstractmethod
    def receive_into(self, into: memoryview) -> int:
        """Fills `into` from its start; returns the number of bytes, ENDED or BLOCKED."""
        ...

    @abstractmethod
    def send_pieces(self, pieces: Sequence[memoryview]) -> int:
        """Returns how many bytes of the pieces were taken, in their order, or BLOCKED: then the
        same bytes are to be offered again."""
        ...

    def close(self) -> None:
        """Closes the socket."""
        self.sock.close()


class PlainCarrier(Carrier):
    """Moves the bytes as they are."""

    def do_handshake(self) -> bool:
        return True

    def receive_into(self, into: memoryview) -> int:
        try:
            return self.sock.recv_into(into)
        except (BlockingIOError, InterruptedError):
            return BLOCKED

    def send_pieces(self, pieces: Sequence[memoryview]) -> int:
        try:
            return self.sock.sendmsg(pieces)
        except (BlockingIOError, InterruptedError):
            return BLOCKED


Carry = Callable[[socket.socket, str], Carrier]
"""Makes the carrier of a connection (socket, host). Raises OSError or ConfigError if there can be
none."""


def plain(sock: socket.socket, host: str) -> Carrier:
    """Returns a carrier without TLS."""
    return PlainCarrier(sock)
