"""Listening sockets: accept what waits."""

import errno
import os
import socket
import struct
from typing import Any, Final

from appliance.base.addresses import plain_address
from appliance.base.caller import Principal
from appliance.base.owner import ADDRESS, OWNER
from appliance.config.broker import BrokerConfig
from appliance.netproc.connections.connections import Connections
from appliance.netproc.transport.socket_options import tune
from appliance.netproc.transport.tls_listeners import TlsListeners

_MOST_AT_ONCE: Final = 64
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""The system lacks something: asking again at once would fail again. Other errors are those of one
connection, or of the network, and accept(2) says to go on with the next one."""
_CREDENTIALS: Final = struct.Struct("=iII")
"""struct ucred of unix(7): process id, user id, group id."""
_ROOT: Final = 0


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
        sealing: TlsListeners,
    ) -> None:
        self._name = name
        self._sealing = sealing
        self._connections = connections
        self._config = config
        self.number = number
        self.sock = sock
        self.principal: Principal | None = None  # of everybody who comes here

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
                if not self._take(sock, self._address(sock, peer)):
                    return
            except OSError:
                sock.close()  # its client has gone already
            except Exception:
                sock.close()
                raise

    def _address(self, sock: socket.socket, peer: Any) -> str:
        """The client's address. Raises OSError for a client that is not served here."""
        return plain_address(peer[0])

    def _take(self, sock: socket.socket, address: str) -> bool:
        """One client; whether the next one may come at once."""
        tune(sock, address, self._config)
        transport = self._sealing.transport(sock, self._name, address)
        return transport is None or self._connections.admit(transport, address, self)


class OwnerListener(Listener):
    """The owner's socket (`base/owner.py`): serves the user that owns the data folder, and root, as
    administrators, and hangs up on everybody else."""

    def __init__(
        self,
        connections: Connections,
        config: BrokerConfig,
        number: int,
        sock: socket.socket,
        name: str,
        sealing: TlsListeners,
        folder: str,
    ) -> None:
        super().__init__(connections, config, number, sock, name, sealing)
        self.principal = OWNER
        self._owner = os.stat(folder).st_uid

    def _address(self, sock: socket.socket, peer: Any) -> str:
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, _ = _CREDENTIALS.unpack(raw)
        if user not in (self._owner, _ROOT):
            raise PermissionError(f"user {user} does not own the data folder")
        return ADDRESS
