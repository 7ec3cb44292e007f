"""Validates TLS settings of this node's listeners: loads the certificates that network processes
would present, so that a change with an error is refused at once.

Invariant: nothing is shown by this process; what it loaded before says which names a certificate
must go on having (KIP-978). Without a listener that speaks TLS nothing is loaded. Called by
`broker/dynamic_listeners.py`.
"""

from collections.abc import Collection

from appliance.base.clock import clock_here
from appliance.certificates.holder import Certificates
from appliance.config.broker import BrokerConfig
from appliance.metadata.effective import broker_config
from appliance.metadata.image import MetadataImage


class ListenerTlsCheck:
    """The TLS validation of this node."""

    __slots__ = ("_certificates", "_config", "_image")

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._image: MetadataImage | None = None
        self._certificates: Certificates | None = None

    def check_image(self, image: MetadataImage) -> None:
        """This is committed."""
        self._image = image
        if self._certificates is None:
            names = [one.name for one in self._config.endpoints()]
            self._certificates = Certificates(self._in_force, names, None, clock_here())

    def check(self, wanted: BrokerConfig, only: Collection[str] | None) -> None:
        """Checks that these settings can replace those in force. only: for these listeners, in
        lower case. Raises ConfigError.
        """
        if self._certificates is not None:
            self._certificates.renew()
            self._certificates.check(wanted, only)

    def _in_force(self) -> BrokerConfig:
        assert self._image is not None, "it is looked at first"
        return broker_config(self._image, self._config)
