"""Listeners that are opened and closed while the appliance serves: bound here, as all are, and
handed to each netproc that runs by the socket pair that it was forked with.

Invariant: a listener keeps its number, which no other one gets; who is connected by one that stays
open stays connected.
What is kept in the data folder (`config/kept_listeners.py`) says what is to be open.
"""

import json
import socket
from contextlib import suppress
from typing import Final

from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.base.owner import LISTENER as OWNER_LISTENER
from appliance.config import kept_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import Endpoint
from appliance.shell.log import ERROR, INFO, WARNING, Log
from appliance.supervisor.layout import CannotStart
from appliance.supervisor.listeners import Listeners

_TOLD: Final = ("listeners", "advertised.listeners", kept_listeners.PROTOCOLS)


def with_kept(config: object, data_dir: str, log: Log) -> object:
    """The settings, with the listeners that were opened while this node served. Raises ConfigError,
    StorageFailed."""
    if not isinstance(config, BrokerConfig):
        return config
    kept = kept_listeners.over(config, kept_listeners.read(OsDisk(), data_dir), socket.getfqdn)
    kept_listeners.check_open(config, kept)
    if missing := kept_listeners.left_out(config, kept):
        log.event(
            WARNING,
            "listeners-left-out",
            listeners=",".join(missing),
            cause=f"{data_dir}/{kept_listeners.KEPT} has those that were set while it served",
        )
    return kept


class BoundListeners:
    """names: of every listener, by its number. has_closed: the last change closed some, at which
    nobody should ask any more."""

    def __init__(
        self, own: object, opened: object, folder: str, listeners: Listeners, netprocs: int
    ) -> None:
        """own: the settings of this start; opened: those with what is kept, by which `listeners`
        are. Settings that are not a broker's name nothing."""
        self._own = own
        self._folder = folder
        self._listeners = listeners
        self._ends: list[tuple[socket.socket, socket.socket] | None] = [None] * netprocs
        self._open = list(opened.opened()) if isinstance(opened, BrokerConfig) else []
        self.has_closed = False
        self._numbers = {one: number for number, one in enumerate(self._open)}
        self.names = [one.name for one in self._open]
        if listeners.has_owner:
            self.names.append(OWNER_LISTENER)

    def ports(self, config: object) -> list[int]:
        """The bound ports of the listeners of these settings, in their order."""
        bound = [port for _, port in self._listeners.addresses]
        if not isinstance(config, BrokerConfig) or len(bound) < len(self._open):
            return bound
        return [bound[self._open.index(one)] for one in config.opened() if one in self._open]

    def addresses(self, config: object) -> list[tuple[str, int]]:
        """(host, port) of the bound listeners of these settings, those for clients first."""
        bound = self._listeners.addresses
        if not isinstance(config, BrokerConfig) or len(bound) < len(self._open):
            return bound
        wanted = dict.fromkeys((*config.endpoints(), *config.opened()))
        return [bound[self._open.index(one)] for one in wanted if one in self._open]

    def pair(self, netproc: int) -> socket.socket:
        """The end of the next process in this place."""
        for one in self._ends[netproc] or ():
            one.close()
        self._ends[netproc] = ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for one in ends:
            one.setblocking(False)
        return ends[1]

    def find_end(self, netproc: int) -> socket.socket | None:
        """Ours, of the process in this place or of the last one there."""
        ends = self._ends[netproc]
        return None if ends is None else ends[0]

    def close(self, but: int | None = None) -> None:
        """Close every end. In a netproc: those of the others, and the supervisor's of its own."""
        for netproc, ends in enumerate(self._ends):
            for one in (ends or ())[: 1 if netproc == but else 2]:
                one.close()

    def open_kept(self, before: object, log: Log) -> object:
        """Open what is kept and not open, close what has a name that is not kept: the settings from
        now on, those before when that cannot be. A listener that was moved is open at both
        addresses."""
        self.has_closed = False
        if not isinstance(self._own, BrokerConfig):
            return before
        try:
            texts = kept_listeners.read(OsDisk(), self._folder)
            config = kept_listeners.over(self._own, texts, socket.getfqdn)
            new = [one for one in config.opened() if one not in self._open]
            for one in new:
                self._listeners.add(one.host, one.port)
        except (ConfigError, CannotStart, StorageFailed) as problem:
            log.event(ERROR, "listeners-not-opened", cause=str(problem))
            self._listeners.close_others(len(self.names))
            return before
        for one in new:
            self._numbers[one] = len(self.names)
            self.names.append(one.name)
        names = {one.name for one in config.opened()}
        gone = [one for one in self._open if one.name not in names]
        closed = [self._numbers.pop(one) for one in gone]
        self.has_closed = bool(closed)
        self._open = [one for one in (*self._open, *new) if one not in gone]
        self._hand_over(new, closed, config)
        for number in closed:
            self._listeners.close_one(number)
        for event, ones in (("listens", new), ("listens-no-more", gone)):
            for one in ones:
                log.event(INFO, event, listener=one.name, at=f"{one.host}:{one.port}")
        return config

    def _hand_over(self, new: list[Endpoint], closed: list[int], config: BrokerConfig) -> None:
        """A netproc that is away has them from its fork."""
        settings = {key: entry.text if (entry := config.entry(key)) else None for key in _TOLD}
        told = {"names": [one.name for one in new], "closed": closed, "settings": settings}
        news = json.dumps(told).encode()
        for netproc, ends in enumerate(self._ends):
            doors = self._listeners.of[netproc][len(self.names) - len(new) :]
            if ends is not None:
                with suppress(OSError):
                    socket.send_fds(ends[0], [news], [one.fileno() for one in doors])
