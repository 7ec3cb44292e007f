"""Listening sockets: accept what waits."""

import socket

from appliance.config.broker import BrokerConfig
from appliance.netproc.connections import Connections
from appliance.netproc.sockets import tune
from appliance.netproc.transport import Plain

_MOST_AT_ONCE = 64


class Listener:
    """One listening socket of this process; connections wait in its backlog while the process is
    restarted."""

    def __init__(
        self, connections: Connections, config: BrokerConfig, number: int, sock: socket.socket
    ) -> None:
        self._connections = connections
        self._config = config
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
                self._connections.out_of_files(self, problem)
                return
            address = str(peer[0])
            tune(sock, address, self._config)
            if not self._connections.admit(Plain(sock), address, self):
                return
