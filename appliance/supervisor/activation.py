"""Sockets that a service manager listens on for us and hands over (sd_listen_fds protocol): who
connects while nobody runs waits in their queue instead of being refused.

A passed socket belongs to the listener whose name it has, else to the one with its address. One
that belongs to none is refused: clients would wait there for ever.

Those of the appliance before, whose successor this one is (`succession.py`), come in the same way,
one for each of its network processes and listeners. They belong to the listener at their very
address; of one that is no more they are closed.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from appliance.base.errors import ConfigError
from appliance.config.listeners import in_url

FIRST: Final = 3
"""The descriptor of the first one."""
_KEPT: Final = "kept."
"""How the name of one begins that the appliance before has kept; a listener's follows."""
_REMEDY: Final = "make ListenStream= of the socket unit and listeners= of the settings say the same"


class Passed(NamedTuple):
    """name: FileDescriptorName= of its unit, which has the unit's name where nobody gave it one.
    kept: by the appliance before; the name is its listener's."""

    name: str
    sock: socket.socket
    kept: bool = False

    @property
    def address_words(self) -> str:
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
    """The sockets handed to the process `pid` by LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES.
    Children do not inherit them. Raises ConfigError.
    """
    if environ.get("LISTEN_PID") != str(pid):
        return []
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    found = []
    for number in range(int(environ.get("LISTEN_FDS", "0"))):
        os.set_inheritable(FIRST + number, False)
        name = names[number] if number < len(names) else ""
        kept = name.startswith(_KEPT)
        found.append(Passed(name.removeprefix(_KEPT), _listening(FIRST + number), kept))
    return found


def make_environment(kept: Sequence[Passed], pid: int) -> dict[str, str]:
    """The environment in which the process `pid` finds these, from descriptor FIRST on."""
    return {
        "LISTEN_PID": str(pid),
        "LISTEN_FDS": str(len(kept)),
        "LISTEN_FDNAMES": ":".join(f"{_KEPT}{one.name}" for one in kept),
    }


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


def match(wanted: Sequence[Wanted], given: Sequence[Passed]) -> dict[int, list[socket.socket]]:
    """Number of a listener → the socket that it has, or those that were kept. One that was kept for
    a listener that is no more is in none. Raises ConfigError."""
    found: dict[int, list[socket.socket]] = {}
    for one in given:
        if one.kept:
            number = _same(wanted, one)
            if number is not None:
                found.setdefault(number, []).append(one.sock)
            continue
        number = _named(wanted, one)
        if number is None:
            number = _placed(wanted, one)
        if number is None:
            raise ConfigError(
                f"listeners: nothing is at {one.address_words}, which was passed: {_REMEDY}"
            )
        if number in found:
            raise ConfigError(
                f"listeners: {one.address_words} and another socket were passed for"
                f" {wanted[number].name}: {_REMEDY}"
            )
        found[number] = [one.sock]
    return found


def _same(wanted: Sequence[Wanted], one: Passed) -> int | None:
    """A listener at port 0 goes on where it was."""
    address, port = one.sock.getsockname()[:2]
    for number, (name, *there) in enumerate(wanted):
        if there == [one.sock.family, address, port]:
            return number
        if there == [one.sock.family, address, 0] and name == one.name:
            return number
    return None


def _named(wanted: Sequence[Wanted], one: Passed) -> int | None:
    for number, listener in enumerate(wanted):
        if one.name and listener.name == one.name.upper():
            if listener.port not in (0, one.sock.getsockname()[1]):
                raise ConfigError(
                    f"listeners: {one.address_words} was passed for {listener.name}, which has"
                    f" port {listener.port}: {_REMEDY}"
                )
            return number
    return None


def _placed(wanted: Sequence[Wanted], one: Passed) -> int | None:
    place = (one.sock.family, *one.sock.getsockname()[:2])
    for number, listener in enumerate(wanted):
        if (listener.family, listener.address, listener.port) == place:
            return number
    return None
