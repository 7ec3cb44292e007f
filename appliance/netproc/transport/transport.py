"""The transport of one connection's bytes, and a plain TCP socket as one.

A transport may have a conversation of its own (a handshake, new keys in the middle): while it does,
`wants` says what it waits for, and the connection watches for that and nothing else. It may hold
bytes that the socket shows no more (`buffered`), be unable to let the kernel send a file
(`sends_files`), and know what no other process can (`stays`). Called by the connection; nothing
here waits.
"""

import contextlib
import fcntl
import os
import select
import socket
import termios
from abc import ABC, abstractmethod
from array import array
from typing import Final

from appliance.base.addresses import plain_address
from appliance.base.compiled import mypyc_attr
from appliance.base.owner import relay_address

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
PEER_ENDED: Final = select.EPOLLRDHUP
"""The client sends nothing more; asked for while it is not read."""
GONE: Final = select.EPOLLHUP | select.EPOLLERR
"""No bytes can pass any more, in either direction; comes unasked."""

BLOCKED: Final = -1
"""Nothing moved: the socket is not ready, or the transport has something else to do first."""

ENDED: Final = 0
"""The peer will send nothing more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport(ABC):
    """sock: non-blocking. wants: READ or WRITE for its own conversation, 0 for nothing of the
    kind. buffered: more can be received at once, whatever the socket says. stays: the socket alone
    is of no use to another process. Every method may raise OSError: the connection is over then."""

    def __init__(self, sock: socket.socket, sends_files: bool, stays: bool = False) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.sends_files = sends_files
        self.stays = stays
        self.wants = 0
        self.buffered = False

    @abstractmethod
    def agree(self) -> bool:
        """Go on with what comes before the first request; whether it is over."""
        ...

    @abstractmethod
    def continue_io(self) -> None:
        """The socket is ready for what it `wants`."""
        ...

    @abstractmethod
    def receive(self, into: memoryview) -> int:
        """Fill `into` from its start; how many bytes, ENDED or BLOCKED."""
        ...

    @abstractmethod
    def send_pieces(self, pieces: list[bytes], more: bool) -> int:
        """How many bytes of these were taken, from the start on, or BLOCKED: then the same bytes
        are offered again. more: others follow at once."""
        ...

    @abstractmethod
    def send_file(self, fd: int, position: int, count: int) -> int:
        """Send bytes of a file; how many were taken, or BLOCKED. Only if `sends_files`."""
        ...

    def certificate(self) -> bytes | None:
        """The client's certificate (X.509, DER); None when it has shown none."""
        return None

    def address(self) -> tuple[str, int]:
        """(host, port) that the client reached."""
        if self.sock.family == socket.AF_UNIX:
            return relay_address(self.sock.getpeername())
        name = self.sock.getsockname()
        return plain_address(str(name[0])), int(name[1])

    def unread(self) -> int:
        """Bytes that have arrived and are not received, those of its own conversation included."""
        count = array("i", [0])
        fcntl.ioctl(self.fd, termios.FIONREAD, count)
        return count[0]

    def peer_port(self) -> int:
        """The port that the client came from, 0 when it has hung up or has none."""
        if self.sock.family == socket.AF_UNIX:
            return 0
        try:
            return int(self.sock.getpeername()[1])
        except OSError:
            return 0

    def hang_up(self, lent: bool) -> None:
        """Close it. lent: a thread may be sending, so that it keeps its descriptor until `close`
        is called behind that."""
        if not lent:
            self.close()
            return
        with contextlib.suppress(OSError):  # the client was faster
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


class Plain(Transport):
    """The bytes as they are."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, sends_files=True)

    def agree(self) -> bool:
        return True

    def continue_io(self) -> None:
        raise AssertionError("it wants nothing of its own")

    def receive(self, into: memoryview) -> int:
        try:
            return self.sock.recv_into(into)
        except (BlockingIOError, InterruptedError):
            return BLOCKED

    def send_pieces(self, pieces: list[bytes], more: bool) -> int:
        try:
            if len(pieces) == 1 and not more:
                return self.sock.send(pieces[0])
            return self.sock.sendmsg(pieces, (), socket.MSG_MORE if more else 0)
        except BlockingIOError:
            return BLOCKED

    def send_file(self, fd: int, position: int, count: int) -> int:
        try:
            return os.sendfile(self.fd, fd, position, count)
        except BlockingIOError:
            return BLOCKED
