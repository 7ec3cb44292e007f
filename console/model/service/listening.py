"""Where systemd is to listen for the appliance: its socket unit, by the listeners of the settings.

A socket that belongs to no listener is refused when the service starts, so both must say the same:
installing again after a change of `listeners` writes it anew.
"""

import re
import socket
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config.listeners import Endpoint, in_url
from appliance.config.load import load
from appliance.shell.bind_address import resolve
from console.model.access.jaas_file import of_jaas_file
from console.model.asking.failure import Failure, usage
from console.model.service.fitting import MARK
from console.model.service.place import SOCKET, Place

_LISTENS: Final = re.compile(
    r"^# The same as.*\n(?:ListenStream=.*\n)+BindIPv6Only=.*\n", re.MULTILINE
)
_LOOPBACK: Final = ("127.0.0.1", "::1")


def socket_unit(text: str, place: Place, settings: str) -> str:
    """The shipped unit's text with the addresses of these settings. Raises Failure for settings
    that are wrong, or that name no fixed address."""
    try:
        name = str(place.settings)
        config, _ = load(
            settings, {}, file_name=name, environment=of_jaas_file(settings, {}, {}, file_name=name)
        )
        endpoints = config.opened()
    except ConfigError as wrong:
        raise usage(
            f"{place.settings}: {wrong}", f"penstock config lint {place.settings}"
        ) from None
    every = [one for one in endpoints if not one.host]
    six = [one for one in endpoints if one.host == "::"]
    if every and six:
        raise usage(
            f"{place.settings}: listeners has one at every address and one at [::]",
            "one socket unit cannot have both: give the second one an address",
        )
    if "listeners" in config.set_names():
        addresses = [_address(one) for one in endpoints]
    else:  # where `penstock up` listens then
        addresses = [f"{in_url(host)}:9092" for host in _LOOPBACK if _is_here(host)]
    lines = [f"# The same as listeners= in {place.settings}: install again when that changes."]
    lines += [f"ListenStream={one}" for one in addresses]
    lines += [f"BindIPv6Only={'both' if every else 'ipv6-only'}"]
    fitted = _LISTENS.sub(lambda _: "\n".join(lines) + "\n", text)
    assert fitted != text, "the shipped unit has these lines"
    flag = "--user " if place.for_user else ""
    return f"{MARK} systemctl {flag}edit {SOCKET}\n{fitted}"


def _address(one: Endpoint) -> str:
    if not one.port:
        raise usage(
            f"listeners has {one.name} at any free port", "a socket unit needs one that is fixed"
        )
    try:
        _, host = resolve(one.host, one.port)
    except OSError as why:
        raise Failure(
            f"{one.host}, where {one.name} listens, has no address: {why.strerror or why}",
            "give the listener an address",
        ) from None
    return f"{in_url(host)}:{one.port}"


def _is_here(host: str) -> bool:
    """True if the host has this loopback address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.bind((host, 0))
    except OSError:
        return False
    return True
