"""Settings of one listener, `listener.name.NAME.SETTING` with the name in lower case: declared by
the setting that they take the place of there.

Called by whoever looks up the declaration of a key that somebody set.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from appliance.config.broker_settings import BROKER
from appliance.config.setting import PER_BROKER, Setting

PREFIX: Final = "listener.name."
KEY_LOCATION: Final = "penstock.ssl.key.location"
_TLS: Final = ("ssl.", KEY_LOCATION)


def key_of(listener: str, key: str) -> str:
    """The key by which a setting is set for a listener alone."""
    return f"{PREFIX}{listener.lower()}.{key}"


def split(key: str) -> tuple[str, str] | None:
    """(listener in lower case, setting) of a key; None when it is of no single listener."""
    if not key.startswith(PREFIX):
        return None
    listener, _, base = key.removeprefix(PREFIX).partition(".")
    return (listener, base) if listener and base else None


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
    base = None if parts is None else BROKER.get(parts[1])
    if base is None or not (base.name.startswith(_TLS) or (base.mode == PER_BROKER and base.inert)):
        return None
    return replace(base, name=key, default=None, mode=PER_BROKER)


def declared(key: str) -> Setting:
    """As `setting_of`, of a key that is known to be one. Raises KeyError."""
    found = setting_of(key)
    if found is None:
        raise KeyError(key)
    return found
