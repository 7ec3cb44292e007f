"""Which listeners speak TLS, by which certificates, and who a client is by its own.

Invariant: where TLS is spoken nobody is served without it. What it takes (OpenSSL, the reader of
certificates) is brought in by the first such listener. Called by the listeners and connections.
"""

import socket
from collections.abc import Callable, Iterable

from appliance.base.caller import Principal
from appliance.base.clock import Clock
from appliance.base.errors import ConfigError
from appliance.certificates.holder import Certificates
from appliance.config.broker import BrokerConfig
from appliance.metadata.changes import Change
from appliance.netproc.transport.transport import Plain, Transport
from appliance.shell.log import WARNING, Log


class TlsListeners:
    """config(): the settings in force. tells: what becomes of certificates is told by this process,
    of several that read the same."""

    def __init__(
        self, config: Callable[[], BrokerConfig], log: Log, clock: Clock, tells: bool
    ) -> None:
        self._log = log
        self._config = config
        self._protocols: dict[str, str] = {}
        self._certificates = Certificates(config, (), log, clock, tells=tells)

    def add(self, names: Iterable[str]) -> None:
        """These listeners are there, too."""
        names = list(names)
        configured = self._config().protocols()
        for name in names:
            self._protocols.setdefault(name, configured.get(name, "PLAINTEXT"))
        self._certificates.add(names)

    def protocol(self, listener: str) -> str:
        """Returns the protocol that this process speaks there, whatever the settings say by now."""
        return self._protocols[listener]

    def transport(self, sock: socket.socket, listener: str, address: str) -> Transport | None:
        """For a connection that was accepted there; None: it is closed, nobody can be served."""
        try:
            context = self._certificates.context(listener)
            if context is None:
                return Plain(sock)
            from appliance.netproc.transport.tls import Tls

            return Tls(sock, context)
        except ConfigError as why:
            self._log.event_from(WARNING, "certificate-missing", address, cause=str(why))
        except OSError:
            pass  # it has gone already
        sock.close()
        return None

    def principal(self, listener: str, certificate: bytes) -> Principal:
        """The principal of a client's certificate (DER). Raises ValueError when
        ssl.principal.mapping.rules gives none."""
        return self._certificates.principal(listener, certificate)

    def follow(self, changes: Iterable[Change], node_id: int) -> None:
        """These were committed, and are in force."""
        self._certificates.follow(changes, node_id)

    def renew(self) -> None:
        """The settings file was read again: read all certificates again."""
        self._certificates.renew()

    def reload_changed(self, now_ns: int) -> None:
        """Once a second: whether files have changed."""
        self._certificates.reload_changed(now_ns)
