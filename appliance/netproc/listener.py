"""Listening sockets: accept what waits."""

import socket

from appliance.config.broker import BrokerConfig
from appliance.netproc.connections import Connections
from appliance.netproc.sealing import Sealing
from appliance.netproc.sockets import tune

_MOST_AT_ONCE = 64


class Listener:
    """One listening socket of this process; connections wait in its backlog while the process is
    restarted."""

    def __init__(
        self,
        connections: Connections,
        config: BrokerConfig,
        number: int,
        sock: socket.socket,
        name: str,
        sealing: Sealing,
    ) -> None:
        self._name = name
        self._sealing = sealing
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
            transport = self._sealing.transport(sock, self._name, address)
            if transport is not None and not self._connections.admit(transport, address, self):
                return
