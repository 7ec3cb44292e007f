"""Listening sockets: accept what waits."""

import errno
import socket
from typing import Final

from appliance.base.addresses import plain_address
from appliance.config.broker import BrokerConfig
from appliance.netproc.connections import Connections
from appliance.netproc.sealing import Sealing
from appliance.netproc.sockets import tune

_MOST_AT_ONCE: Final = 64
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""The system lacks something: asking again at once would fail again. Other errors are those of one
connection, or of the network, and accept(2) says to go on with the next one."""


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
                if problem.errno not in _EXHAUSTED:
                    continue
                self._connections.cannot_accept(self, problem)
                return
            try:
                if not self._take(sock, plain_address(peer[0])):
                    return
            except OSError:
                sock.close()  # its client has gone already
            except Exception:
                sock.close()
                raise

    def _take(self, sock: socket.socket, address: str) -> bool:
        """One client; whether the next one may come at once."""
        tune(sock, address, self._config)
        transport = self._sealing.transport(sock, self._name, address)
        return transport is None or self._connections.admit(transport, address, self)
