"""Sockets that a service manager listens on for us and hands over (sd_listen_fds protocol): who
connects while nobody runs waits in their queue instead of being refused.

A passed socket belongs to the listener whose name it has, else to the one with its address. One
that belongs to none is refused: clients would wait there for ever.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from appliance.base.errors import ConfigError
from appliance.config.listeners import in_url

_FIRST: Final = 3
_REMEDY: Final = "make ListenStream= of the socket unit and listeners= of the settings say the same"


class Passed(NamedTuple):
    """name: FileDescriptorName= of its unit, which has the unit's name where nobody gave it one."""

    name: str
    sock: socket.socket

    @property
    def told(self) -> str:
        """Its address, for people."""
        host, port = self.sock.getsockname()[:2]
        return f"{in_url(host)}:{port}"


class Wanted(NamedTuple):
    """A listener of the settings. family and address: of the numeric address to bind."""

    name: str
    family: int
    address: str
    port: int


def passed(environ: Mapping[str, str], pid: int) -> list[Passed]:
    """What was handed over to the process `pid` by LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES; from
    now on nobody whom it starts has them. Raises ConfigError."""
    if environ.get("LISTEN_PID") != str(pid):
        return []
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    found = []
    for number in range(int(environ.get("LISTEN_FDS", "0"))):
        os.set_inheritable(_FIRST + number, False)
        name = names[number] if number < len(names) else ""
        found.append(Passed(name, _listening(_FIRST + number)))
    return found


def _listening(fd: int) -> socket.socket:
    try:
        sock = socket.socket(fileno=fd)
    except OSError as problem:
        raise ConfigError(f"what was passed as descriptor {fd} is no socket: {problem}") from None
    listens = False
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    if not listens:
        raise ConfigError(
            f"what was passed as descriptor {fd} does not listen for TCP connections: the socket"
            " unit takes ListenStream=HOST:PORT and Accept=no"
        )
    sock.setblocking(False)
    return sock


def match(wanted: Sequence[Wanted], given: Sequence[Passed]) -> dict[int, socket.socket]:
    """Number of a listener → the socket that it has. Raises ConfigError."""
    found: dict[int, socket.socket] = {}
    for one in given:
        number = _named(wanted, one)
        if number is None:
            number = _placed(wanted, one)
        if number is None:
            raise ConfigError(f"listeners: nothing is at {one.told}, which was passed: {_REMEDY}")
        if number in found:
            raise ConfigError(
                f"listeners: {one.told} and another socket were passed for {wanted[number].name}:"
                f" {_REMEDY}"
            )
        found[number] = one.sock
    return found


def _named(wanted: Sequence[Wanted], one: Passed) -> int | None:
    for number, listener in enumerate(wanted):
        if one.name and listener.name == one.name.upper():
            if listener.port not in (0, one.sock.getsockname()[1]):
                raise ConfigError(
                    f"listeners: {one.told} was passed for {listener.name}, which has port"
                    f" {listener.port}: {_REMEDY}"
                )
            return number
    return None


def _placed(wanted: Sequence[Wanted], one: Passed) -> int | None:
    place = (one.sock.family, *one.sock.getsockname()[:2])
    for number, listener in enumerate(wanted):
        if (listener.family, listener.address, listener.port) == place:
            return number
    return None
