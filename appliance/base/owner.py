"""The owner's socket: a Unix-domain socket in the data folder, at which the user that owns the
folder, and root, are administrators without a password.

The listener has a name that no setting can have. A client that passes requests of others on binds
its own end to an abstract address that says where these others reach it; Metadata tells them that
address. The principal has a type of its own, so that no login and no certificate gives it.
"""

from typing import Final

from appliance.base.caller import Principal

FILE: Final = "penstock.sock"
LISTENER: Final = "(owner)"
OWNER: Final = Principal("Owner", "local")
SUPER_USER: Final = f"{OWNER.type}:{OWNER.name}"
ADDRESS: Final = "127.0.0.1"
"""The address of the owner as a client."""
_PREFIX: Final = "\0penstock-relay/"
_NOWHERE: Final = ("localhost", 0)


def relay_name(host: str, port: int, nonce: str) -> str:
    """Returns the abstract address for a client that is reached at host:port."""
    return f"{_PREFIX}{host}:{port}/{nonce}"


def relay_address(name: object) -> tuple[str, int]:
    """Returns (host, port) of `relay_name`; ("localhost", 0) for any other address."""
    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    if not text.startswith(_PREFIX):
        return _NOWHERE
    place = text.removeprefix(_PREFIX).partition("/")[0]
    host, _, port = place.rpartition(":")
    return (host, int(port)) if host and port.isdigit() and int(port) <= 0xFFFF else _NOWHERE
