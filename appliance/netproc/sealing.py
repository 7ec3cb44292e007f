"""Which listeners speak TLS, by which certificates, and who a client is by its own.

Invariant: where TLS is spoken nobody is served without it. What it takes (OpenSSL, the reader of
certificates) is brought in by the first such listener. Called by the listeners and connections.
"""

import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from appliance.base.caller import ANONYMOUS, Principal
from appliance.base.clock import Clock
from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig
from appliance.metadata.changes import Change
from appliance.netproc.transport import Plain, Transport
from appliance.shell.log import WARNING, Log

if TYPE_CHECKING:
    from appliance.certificates.holder import Certificates


class Sealing:
    """config(): the settings in force. tells: what becomes of certificates is told by this process,
    of several that read the same."""

    def __init__(
        self, config: Callable[[], BrokerConfig], log: Log, clock: Clock, tells: bool
    ) -> None:
        self._config = config
        self._log = log
        self._clock = clock
        self._tells = tells
        self._sealed: set[str] = set()
        self._certificates: Certificates | None = None

    def add(self, names: Iterable[str]) -> None:
        """These listeners are there, too."""
        protocols = self._config().protocols()
        sealed = [name for name in names if protocols.get(name) == "SSL"]
        if sealed and self._certificates is None:
            from appliance.certificates.holder import Certificates

            self._certificates = Certificates(
                self._config, (), self._log, self._clock, tells=self._tells
            )
        if self._certificates is not None:
            self._sealed.update(sealed)
            self._certificates.add(sealed)

    def transport(self, sock: socket.socket, listener: str, address: str) -> Transport | None:
        """For a connection that was accepted there; None: it is closed, nobody can be served."""
        held = self._certificates
        if held is None or listener not in self._sealed:
            return Plain(sock)
        from appliance.netproc.tls import Tls

        try:
            context = held.context(listener)
            assert context is not None, "a listener with TLS would serve without it"
            return Tls(sock, context)
        except ConfigError as why:
            self._log.event_from(WARNING, "certificate-missing", address, cause=str(why))
        except OSError:
            pass  # it has gone already
        sock.close()
        return None

    def principal(self, listener: str, certificate: bytes) -> Principal:
        """Who has shown this certificate (DER). Raises ValueError: nobody, by
        ssl.principal.mapping.rules."""
        held = self._certificates
        return ANONYMOUS if held is None else held.principal(listener, certificate)

    def follow(self, changes: Iterable[Change], node_id: int) -> None:
        """These were committed, and are in force."""
        if self._certificates is not None:
            self._certificates.follow(changes, node_id)

    def renew(self) -> None:
        """The settings file was read again: read all certificates again."""
        if self._certificates is not None:
            self._certificates.renew()

    def look(self, now_ns: int) -> None:
        """Once a second: whether files have changed."""
        if self._certificates is not None:
            self._certificates.look(now_ns)
