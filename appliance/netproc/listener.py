"""Listening sockets: accept what waits, and say which address clients should be told."""

import socket
from typing import TYPE_CHECKING

from appliance.config.broker import BrokerConfig
from appliance.netproc.sockets import tune

if TYPE_CHECKING:
    from appliance.netproc.server import Server

_MOST_AT_ONCE = 64


class Listener:
    """One listening socket of this process; connections wait in its backlog while the process is
    restarted."""

    def __init__(self, server: "Server", number: int, sock: socket.socket) -> None:
        self.server = server
        self.number = number
        self.sock = sock

    def ready(self, mask: int) -> None:
        """Accept up to a bounded number of connections, so that those there are not starved."""
        for _ in range(_MOST_AT_ONCE):
            try:
                sock, peer = self.sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as problem:
                self.server.out_of_files(self, problem)
                return
            address = str(peer[0])
            tune(sock, address, self.server.config)
            if not self.server.admit(sock, address, self.number):
                return


def advertised(config: BrokerConfig, sock: socket.socket, number: int) -> tuple[str, int]:
    """(host, port) to tell a client: advertised.listeners if set, else the address that its own
    socket reached.

    The latter is right behind every name, interface and container that the client can reach at all;
    only a translated address (NAT, a published container port) needs the setting.
    """
    told = config.advertised(number)
    if told is not None:
        return told
    name = sock.getsockname()
    return str(name[0]), int(name[1])
