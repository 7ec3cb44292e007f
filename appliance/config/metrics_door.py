"""The settings of the listener of metrics: who may ask there, and whether it speaks TLS.

Its key store, trust store and `ssl.client.auth` are those of a listener that is called METRICS
(`listener.name.metrics.ssl.…`), else those of all. Called by `load.py` and by the exporter.
"""

from collections.abc import Iterator
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config import open_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.listener_settings import key_of
from appliance.config.listeners import in_url

LISTENER: Final = "penstock.metrics.listener"
PROTOCOL: Final = "penstock.metrics.security.protocol"
BASIC: Final = "penstock.metrics.basic.auth.user.info"
NAME: Final = "METRICS"
SSL: Final = "SSL"


def speaks_tls(config: BrokerConfig) -> bool:
    """True if the listener of metrics speaks TLS."""
    return bool(config.get_value(LISTENER)) and config.text(PROTOCOL) == SSL


def metrics_url(config: BrokerConfig, host: str, port: int) -> str:
    """Returns the address of the metrics at a host and port."""
    return f"{'https' if speaks_tls(config) else 'http'}://{in_url(host)}:{port}/metrics"


def user_info(config: BrokerConfig) -> str:
    """NAME:PASSWORD of who may ask, "" where no password is needed. Raises ConfigError."""
    told = str(config.get_value(BASIC) or "")
    name, colon, password = told.partition(":")
    if told and not (name and colon and password):
        raise ConfigError(f"{BASIC}: NAME:PASSWORD is needed, both of at least one character")
    return told


def asks_for_certificate(config: BrokerConfig) -> bool:
    """True if only clients with a certificate are served."""
    return speaks_tls(config) and config.of_listener(NAME, open_listeners.CLIENT_AUTH) == "required"


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError for what does not fit, and for a listener that other hosts reach
    without credentials unless `penstock.listeners.without.authentication` allows it."""
    at = config.endpoint(LISTENER)
    told = user_info(config)
    if at is None or open_listeners.is_loopback(at.host):
        return
    if told and not speaks_tls(config):
        yield (
            f"{LISTENER}: the password of {BASIC} goes over the network in the clear;"
            f" {PROTOCOL}={SSL} encrypts it"
        )
    if told or asks_for_certificate(config):
        return
    if config.text(open_listeners.SETTING) != open_listeners.ALLOW:
        raise ConfigError(_refusal(f"{in_url(at.host)}:{at.port}"))


def _refusal(at: str) -> str:
    lines = (
        f"{LISTENER}: other hosts can reach {at} without credentials, and read there the names of"
        " topics, groups and clients. One of these keeps strangers out:",
        f"  {BASIC}=NAME:PASSWORD, with {PROTOCOL}={SSL}, which encrypts it",
        f"  {PROTOCOL}={SSL} and {key_of(NAME, open_listeners.CLIENT_AUTH)}=required: clients with"
        " a certificate alone",
        f"  {LISTENER}=localhost:PORT: this host alone",
        f"{open_listeners.ALLOWED} opens it nevertheless, for a network that only you reach",
    )
    return "\n".join(lines)
