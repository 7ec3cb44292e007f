"""Certificates of connections that this node opens to others: what it shows them, and whom it
believes.

They are the settings and files of the listener by which nodes reach one another. Files are read
again when they have changed, at the next connection; what cannot be used never takes the place of
what can. Where nodes speak plaintext nothing of TLS is imported. Called by the loop of a process.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from appliance.base.clock import Clock
from appliance.base.errors import ConfigError
from appliance.certificates import files
from appliance.certificates.settings import TlsSettings, of_listener
from appliance.config.broker import BrokerConfig

if TYPE_CHECKING:
    from ssl import SSLContext

    from appliance.certificates.context import LoadedContext

_LOOK_NS: Final = 1_000_000_000


class OutgoingCertificates:
    """The client's side of TLS of one listener's settings."""

    __slots__ = ("_clock", "_config", "_listener", "_loaded", "_look_ns", "_settings", "_tried")

    def __init__(self, config: Callable[[], BrokerConfig], listener: str, clock: Clock) -> None:
        """config(): the settings in force."""
        self._config = config
        self._listener = listener
        self._clock = clock
        self._look_ns = 0
        self._loaded: LoadedContext | None = None
        self._settings: TlsSettings | None = None
        self._tried: tuple[files.Stamp, ...] = ()

    def context(self) -> "SSLContext":
        """Returns the SSLContext of a new connection. Raises ConfigError while none could be
        loaded."""
        from appliance.certificates.context import load_client

        now_ns = self._clock.monotonic_ns()
        if self._loaded is not None and now_ns < self._look_ns:
            return self._loaded.context
        self._look_ns = now_ns + _LOOK_NS
        settings = of_listener(self._config(), self._listener)
        if self._loaded is None or settings != self._settings or files.changed(self._tried):
            self._settings, self._tried = settings, files.stamps(settings.files())
            try:
                self._loaded = load_client(settings)
            except ConfigError:
                if self._loaded is None:
                    raise
        return self._loaded.context
