"""The listening sockets: one per netproc and listener, all on one address by SO_REUSEPORT.

The supervisor opens them before it forks and keeps them, so that a connection made while a netproc
is being replaced waits in the backlog instead of being refused. One that was passed by a service
manager (`activation.py`) is shared by all netprocs: what waits there when the appliance ends is the
next start's. Those that the appliance before has kept go to one netproc each, as they were.
"""

import errno
import socket
from collections.abc import Sequence
from typing import Final

from appliance.base.errors import ConfigError
from appliance.base.owner import FILE as OWNER_FILE
from appliance.config import open_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import Endpoint, in_url
from appliance.shell import bind_address
from appliance.supervisor import owner_socket
from appliance.supervisor.activation import Passed, Wanted, match
from appliance.supervisor.layout import CannotStart, Layout

_LISTEN: Final = "--listen"
_SCRAPERS: Final = 64


class AddressInUse(CannotStart):
    """The address cannot be listened on; the text names it and the remedy."""


class Listeners:
    """Every listening socket: `of[netproc][listener]`; `addresses` are (host, port) as bound."""

    __slots__ = ("_backlog", "_closed", "_folder", "_owner", "_places", "of")

    def __init__(self, layout: Layout, passed: Sequence[Passed] = ()) -> None:
        """Bind and listen, where nobody has passed a socket. Raises AddressInUse; ConfigError when
        what was passed does not fit."""
        self._backlog = layout.backlog
        self._folder = ""
        self._owner = -1  # the number of the owner's socket
        self._closed: set[int] = set()  # numbers of those that were closed for good
        self.of: list[list[socket.socket]] = [[] for _ in range(layout.netprocs)]
        self._places: list[tuple[str, int]] = []
        try:
            names = layout.names or [""] * len(layout.listeners)
            wanted = [
                Wanted(name, *_resolve(host, port), port)
                for name, (host, port) in zip(names, layout.listeners, strict=True)
            ]
            have = match(wanted, passed)
            used = [sock for socks in have.values() for sock in socks]
            for given in passed:
                if given.sock not in used:  # another listener may want the port
                    given.sock.close()
            for number, one in enumerate(wanted):
                if number in have:
                    port = self._share(have[number])
                else:
                    port = self._open(one.family, one.address, one.port)
                self._places.append((layout.listeners[number][0] or one.address, port))
        except BaseException:
            self.close()
            raise
        finally:
            for given in passed:
                given.sock.close()

    @classmethod
    def checked(
        cls, config: object, layout: Layout, passed: Sequence[Passed], folder: str = ""
    ) -> "Listeners":
        """Binds what nobody has passed. Raises AddressInUse; ConfigError where what was passed does
        not fit, or a passed socket is open to other hosts without authentication.
        folder: the data folder, whose owner's socket is opened, too; "": none."""
        made = cls(layout, passed)
        if isinstance(config, BrokerConfig):
            known = {
                one.name for one in open_listeners.find_open(config)
            }  # and checked as settings
            bound = [
                Endpoint(name, *sock.getsockname()[:2])
                for mine in made.of
                for name, sock in zip(layout.names, mine, strict=False)
                if name not in known
            ]
            try:
                list(open_listeners.check(config, dict.fromkeys(bound)))
                if folder and config.is_broker and open_listeners.asks_its_owner(config):
                    made.add_owner(folder)
            except (ConfigError, CannotStart):
                made.close()
                raise
        return made

    def _open(self, family: int, address: str, port: int) -> int:
        """A port of ours may be taken at more addresses."""
        if port and port not in [other for _, other in self.addresses]:
            try:
                bind_address.probe(family, address, port)
            except OSError as refused:
                raise _unusable(address, port, refused) from None
        for mine in self.of:
            if len(mine) == len(self._places):  # else it is not coming back
                mine.append(self._listen(family, address, port, self._backlog))
                port = mine[-1].getsockname()[1]
        return port

    def _share(self, given: Sequence[socket.socket]) -> int:
        """One for each netproc where there are so many, else several have the same. Who waits in
        one too many is hung up on."""
        for place, mine in enumerate(self.of):
            mine.append(given[place % len(given)].dup())
        port: int = given[0].getsockname()[1]
        return port

    @property
    def has_owner(self) -> bool:
        """True if the owner's socket is open."""
        return self._owner >= 0

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """(host, port) of each that is open, as bound, but for the owner's socket."""
        left_out = {self._owner, *self._closed}
        return [one for number, one in enumerate(self._places) if number not in left_out]

    def add_owner(self, folder: str) -> None:
        """The owner's socket of this data folder is the next one by number. Raises CannotStart."""
        try:
            one = owner_socket.open_socket(folder, self._backlog)
        except OSError as problem:
            raise CannotStart(
                f"{folder}/{OWNER_FILE} cannot be opened: {problem.strerror or problem}; the"
                " data folder needs a file system with Unix-domain sockets"
            ) from None
        self._folder, self._owner = folder, len(self._places)
        self._places.append((folder, 0))
        for mine in self.of:
            mine.append(one.dup())
        one.close()

    def keep_open(self, names: Sequence[str]) -> list[Passed]:
        """All that are open, for a successor, which makes the owner's socket anew. names: of the
        listeners, as far as they have any."""
        return [
            Passed(names[number] if number < len(names) else "", sock, kept=True)
            for mine in self.of
            for number, sock in enumerate(mine)
            if number not in (self._owner, *self._closed)
        ]

    def add(self, host: str, port: int) -> None:
        """One more, the last by number. Raises AddressInUse."""
        family, address = _resolve(host, port)
        self._places.append((host or address, self._open(family, address, port)))

    def close_one(self, number: int) -> None:
        """Closes a listener for good; the others keep their numbers."""
        self._closed.add(number)
        for mine in self.of:
            if number < len(mine):
                mine[number].close()

    def close_others(self, kept: int) -> None:
        """Close those behind the first so many."""
        del self._places[kept:]
        for mine in self.of:
            while len(mine) > kept:
                mine.pop().close()

    def close(self, netproc: int | None = None) -> None:
        """Close the supervisor's copies: of one netproc, which is not coming back, or all, and
        remove the owner's socket."""
        if netproc is None and self._folder:
            owner_socket.remove(self._folder)
            self._folder = ""
        for mine in self.of if netproc is None else self.of[netproc : netproc + 1]:
            while mine:
                mine.pop().close()

    @staticmethod
    def _listen(family: int, host: str, port: int, backlog: int) -> socket.socket:
        one = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
            one.bind((host, port))
            one.listen(backlog)
        except OSError as refused:
            one.close()
            raise _unusable(host, port, refused) from None
        return one


def in_order(config: object, bound: Sequence[tuple[str, int]]) -> list[str]:
    """HOST:PORT of each listener: those of clients without TLS first, since who is on this host
    needs nothing more to use one. bound: by the listener's number."""
    told = [f"{in_url(host)}:{port}" for host, port in bound]
    if not isinstance(config, BrokerConfig):
        return told
    protocols, clients = config.protocols(), config.endpoints()
    plain = [protocols.get(one.name) == "PLAINTEXT" for one in clients[: len(bound)]]
    return [
        one
        for wanted in (True, False)
        for one, is_plain in zip(told, plain, strict=False)
        if is_plain is wanted
    ] + told[len(plain) :]


def listen_for_scrapers(host: str, port: int) -> socket.socket:
    """The one socket on which metrics are told. Raises AddressInUse."""
    told = "the setting penstock.metrics.listener"
    family, address = _resolve(host, port, told)
    one = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((address, port))
        one.listen(_SCRAPERS)
    except OSError as refused:
        one.close()
        raise _unusable(host, port, refused, told) from None
    return one


def _resolve(host: str, port: int, told: str = _LISTEN) -> tuple[int, str]:
    try:
        return bind_address.resolve(host, port)
    except OSError as unknown:
        raise _unusable(host, port, unknown, told) from None


def _unusable(host: str, port: int, refused: OSError, told: str = _LISTEN) -> AddressInUse:
    if refused.errno == errno.EADDRINUSE:
        return AddressInUse(
            f"{host}:{port} is in use by another process: stop that one, or choose another "
            f"port with {told}"
        )
    why = refused.strerror or refused
    remedy = f"name an address of this host with {told}"
    if refused.errno == errno.EACCES:
        remedy = f"name a port from 1024 on with {told}, or start it as root"
    return AddressInUse(f"{host}:{port} cannot be listened on: {why}; {remedy}")
