"""Settings of one listener, `listener.name.NAME.SETTING` with the name in lower case: declared by
the setting that they take the place of there.

Called by whoever looks up the declaration of a key that somebody set.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from appliance.authentication.mechanisms import ABSENT, SERVED
from appliance.config.broker_settings import BROKER
from appliance.config.setting import PER_BROKER, Setting

PREFIX: Final = "listener.name."
KEY_LOCATION: Final = "penstock.ssl.key.location"
_TLS: Final = ("ssl.", KEY_LOCATION)
_LOGINS: Final = ("connections.max.reauth.ms", "sasl.server.max.receive.size")
"""Of logins, which a file may set for a listener and nobody while it runs."""
_MECHANISMS: Final = tuple(one.lower() for one in (*SERVED, *ABSENT))
_OF_MECHANISMS: Final = (
    *("sasl.jaas.config", "connections.max.reauth.ms", "sasl.login.class"),
    *("sasl.server.callback.handler.class", "sasl.login.callback.handler.class"),
    *(name for name in BROKER if name.startswith("sasl.oauthbearer.")),
)
"""Settings of a listener that a mechanism may have, too: `listener.name.NAME.MECHANISM.SETTING`."""


def key_of(listener: str, key: str) -> str:
    """The key by which a setting is set for a listener alone."""
    return f"{PREFIX}{listener.lower()}.{key}"


def split(key: str) -> tuple[str, str] | None:
    """(listener in lower case, setting) of a key; None when it is of no single listener."""
    if not key.startswith(PREFIX):
        return None
    listener, _, base = key.removeprefix(PREFIX).partition(".")
    return (listener, base) if listener and base else None


def mechanism_of(base: str) -> tuple[str, str]:
    """(mechanism in lower case or "", setting) of a setting of a listener."""
    mechanism, _, rest = base.partition(".")
    return (mechanism, rest) if mechanism in _MECHANISMS and rest in _OF_MECHANISMS else ("", base)


def is_tls(key: str) -> bool:
    """True if the key is a TLS setting, of all listeners or of one."""
    parts = split(key)
    return (key if parts is None else parts[1]).startswith(_TLS)


@lru_cache(maxsize=256)
def setting_of(key: str) -> Setting | None:
    """The declaration of a key, that of the broker or of one listener; None when there is none."""
    found = BROKER.get(key)
    if found is not None:
        return found
    parts = split(key)
    mechanism, name = ("", "") if parts is None else mechanism_of(parts[1])
    base = BROKER.get(name)
    if base is None:
        return None
    if mechanism:
        why = "" if name == _OF_MECHANISMS[0] or name in _LOGINS else base.inert
        if name.startswith("sasl.oauthbearer."):  # as Kafka has them; read at the start
            return replace(base, name=key, default=None)
        return replace(base, name=key, default=None, mode=PER_BROKER, inert=why)
    if name in _LOGINS:
        return replace(base, name=key, default=None)
    own = base.mode == PER_BROKER and (base.inert or name == "sasl.enabled.mechanisms")
    if not (own or name.startswith(_TLS)):
        return None
    return replace(base, name=key, default=None, mode=PER_BROKER)


def declared(key: str) -> Setting:
    """As `setting_of`, of a key that is known to be one. Raises KeyError."""
    found = setting_of(key)
    if found is None:
        raise KeyError(key)
    return found
