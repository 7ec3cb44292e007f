"""TLS settings of one listener: its own (`listener.name.NAME.ssl.…`), else those of all listeners.

A value: two are equal when nothing has to be loaded anew because of settings.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.config.broker import BrokerConfig
from appliance.config.listener_settings import KEY_LOCATION, PREFIX, is_tls
from appliance.config.logins import SASL_SSL
from appliance.metadata.changes import Change, ConfigChanged
from appliance.metadata.image_state import BROKER

TLS: Final = ("SSL", SASL_SSL)
"""The protocols of listeners that speak TLS."""


@dataclass(slots=True, frozen=True, kw_only=True)
class TlsSettings:
    """TLS settings of one listener; None: not set. keys: by the name of a setting the key that was
    looked at, for errors. checks_names: the certificate of a node that this one connects to must
    name its host. Secrets are left out where it is shown."""

    listener: str
    keystore_location: str | None
    key_location: str | None
    truststore_location: str | None
    client_auth: str
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    mapping_rules: str
    allow_dn_changes: bool
    allow_san_changes: bool
    checks_names: bool
    keystore_password: str | None = field(repr=False)
    key_password: str | None = field(repr=False)
    keystore_key: str | None = field(repr=False)
    keystore_chain: str | None = field(repr=False)
    truststore_password: str | None = field(repr=False)
    truststore_certificates: str | None = field(repr=False)
    keys: dict[str, str] = field(compare=False, repr=False)

    def key(self, name: str) -> str:
        """Returns the key that a person sets for this listener."""
        return self.keys.get(name, name)

    def files(self) -> list[str]:
        """Those that it is loaded from."""
        named = (self.keystore_location, self.key_location, self.truststore_location)
        return [path for path in named if path is not None]


_TEXTS: Final = {
    "keystore_location": "ssl.keystore.location",
    "key_location": KEY_LOCATION,
    "truststore_location": "ssl.truststore.location",
    "keystore_password": "ssl.keystore.password",
    "key_password": "ssl.key.password",
    "keystore_key": "ssl.keystore.key",
    "keystore_chain": "ssl.keystore.certificate.chain",
    "truststore_password": "ssl.truststore.password",
    "truststore_certificates": "ssl.truststore.certificates",
}


def speaking(config: BrokerConfig) -> list[str]:
    """Names of the listeners that speak TLS, in their order."""
    protocols = config.protocols()
    return [one.name for one in config.opened() if protocols.get(one.name) in TLS]


def of_listener(config: BrokerConfig, listener: str) -> TlsSettings:
    """Returns the TLS settings of a listener."""
    keys: dict[str, str] = {}

    def text(name: str) -> str | None:
        keys[name] = config.key_for(listener, name)
        value = config.get_value(keys[name])
        return str(value) if value else None

    def words(name: str) -> tuple[str, ...]:
        keys[name] = config.key_for(listener, name)
        return config.list(keys[name])

    def whether(name: str) -> bool:
        keys[name] = config.key_for(listener, name)
        return config.bool(keys[name])

    client_auth = text("ssl.client.auth") or "none"
    if config.protocols().get(listener) == SASL_SSL and not keys["ssl.client.auth"].startswith(
        PREFIX
    ):
        client_auth = "none"  # who logs in needs no certificate but where its listener says so
    return TlsSettings(
        listener=listener,
        client_auth=client_auth,
        protocols=words("ssl.enabled.protocols"),
        cipher_suites=words("ssl.cipher.suites"),
        mapping_rules=text("ssl.principal.mapping.rules") or "DEFAULT",
        allow_dn_changes=whether("ssl.allow.dn.changes"),
        allow_san_changes=whether("ssl.allow.san.changes"),
        checks_names=text("ssl.endpoint.identification.algorithm") is not None,
        keys=keys,
        **{attribute: text(name) for attribute, name in _TEXTS.items()},
    )


def concerns(changes: Iterable[Change], node_id: int) -> bool:
    """True if any change may concern TLS of a listener on this node."""
    mine = ("", str(node_id))
    return any(
        isinstance(one, ConfigChanged)
        and one.resource_type == BROKER
        and one.resource_name in mine
        and is_tls(one.key)
        for one in changes
    )
