"""Listeners that the supervisor opened or closed later, as they arrive: names and sockets, numbers,
and what clients are told of them.

Called by the loop, when something lies in the socket of this process.
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from appliance.shell.loop import Loop

_MOST_BYTES: Final = 1 << 17
_MOST_DOORS: Final = 64
READ: Final = 1  # EPOLLIN


class ListenerTarget(Protocol):
    """The server."""

    def listen_also(
        self,
        names: Sequence[str],
        doors: Sequence[socket.socket],
        settings: Mapping[str, str | None],
    ) -> None:
        """Accept connections there, too. settings: of this node's listeners, from now on;
        None: as nobody has set it."""
        ...

    def close_listeners(self, numbers: Sequence[int]) -> None:
        """Accept nobody there any more, and end the connections that came by them."""
        ...


class ListenerChanges:
    """One end of the pair; the supervisor has the other."""

    def __init__(self, sock: socket.socket, loop: Loop, server: ListenerTarget) -> None:
        self._sock = sock
        self._loop = loop
        self._server = server
        loop.register(sock.fileno(), READ, self)

    def ready(self, mask: int) -> None:
        """Take what came; without a supervisor nothing comes any more."""
        try:
            said, fds, _, _ = socket.recv_fds(self._sock, _MOST_BYTES, _MOST_DOORS)
        except (BlockingIOError, InterruptedError):
            return
        if not said:
            self._loop.unregister(self._sock.fileno())
            return
        news = json.loads(said)
        doors = [socket.socket(fileno=fd) for fd in fds]
        for one in doors:
            os.set_inheritable(one.fileno(), False)
            one.setblocking(False)
        assert len(doors) == len(news["names"]), "each listener has a socket"
        self._server.listen_also(news["names"], doors, news["settings"])
        self._server.close_listeners(news["closed"])
