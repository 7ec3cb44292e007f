"""Context of a child process, handed down by the supervisor: its place, its config and its ends of
everything shared.

A child gets a Seat by being forked, keeps it until it dies and gives it to no one. Doorbells are
eventfds, the listening sockets stay open in the supervisor, memory is unmapped by the death of the
last process.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from appliance.authorization.rights import AllowAll, Authorizer
from appliance.base.dataclass import dataclass
from appliance.ring.bound_table import BoundTable
from appliance.ring.client_table import ClientTable
from appliance.ring.counters import Counters, ErrorCounts
from appliance.ring.event_ring import EventTable
from appliance.ring.lag_table import LagTable
from appliance.ring.partition_table import PartitionTable
from appliance.ring.process_table import Peer, ProcessTable
from appliance.ring.push_table import PushTable
from appliance.ring.quota_table import QuotaTable
from appliance.ring.security_table import SecurityTable
from appliance.shell.audit import Trail
from appliance.shell.handed_connection import HandedConnection
from appliance.shell.log import Log
from appliance.shell.settings_reload import SettingsReload

ANEW: Final = 75
"""Exit code (EX_TEMPFAIL of sysexits.h) of who wants a successor at once: control when other
listeners are kept in the data folder than it has, and the supervisor opens them; a netproc that has
left its connections to it."""
_SECRET: Final = os.urandom(32)
"""Of this run: made in the supervisor, which is there before it forks."""
UNBEGUN: Final = 76
"""Exit code of who ends in order where the appliance before had not flushed everything: an I/O
process before it has opened anything, control before its cluster has heard of that. The next start
must check, and tell, as this one would have."""


@dataclass(slots=True, frozen=True)
class RingPair:
    """The two rings to one peer: I write `out`, I read `into`; each is slots, then its payload
    area."""

    out: memoryview
    into: memoryview


@dataclass(slots=True, frozen=True, kw_only=True)
class Seat:
    """The place of one process."""

    kind: int
    index: int
    generation: int
    config: Any
    """The broker's settings as parsed; the supervisor passes them through unseen."""
    run_id: bytes
    """16 bytes that no other run of an appliance has, the same for all its processes and their
    successors: the incarnation by which the broker registers."""
    data_dir: str
    clean: bool
    """The appliance before this one ended in order (False again for the successor of a process that
    died)."""
    processes: ProcessTable
    partitions: PartitionTable
    quotas: QuotaTable
    """Counters of client quotas: netproc n counts in region n, control in the last one."""
    counters: Counters
    """What is counted of requests: every process in its own region."""
    clients: ClientTable
    """Who is connected: each netproc writes its own region."""
    lags: LagTable
    """How far groups are behind: each ioproc writes its own region."""
    pushes: PushTable
    """What clients push of their metrics: each netproc writes its own region."""
    events: EventTable
    """What each process says of itself: `log` writes there."""
    security: SecurityTable
    """Logins, denials and changes: every process in its own region."""
    bounds: BoundTable
    """How often bounds were reached: every process in its own region."""
    rereading: SettingsReload
    """Tells when the settings file was read again."""
    arenas: Sequence[memoryview]
    """One per netproc, in the order of their indexes."""
    doorbell: int
    doorbells: Mapping[Peer, int]
    supervisor_doorbell: int
    rings: Mapping[Peer, RingPair]
    ioprocs: int
    netprocs: int
    ring_slots: int
    other_dirs: Sequence[str] = ()
    """The log folders besides `data_dir`, in the order of the settings."""
    listeners: Sequence[socket.socket] = ()
    """A netproc's own listening sockets, one per listener, non-blocking."""
    names: Sequence[str] = ()
    """Of the listeners, by their numbers."""
    news: socket.socket | None = None
    """By which a netproc is given listeners that are opened later."""
    guests: Sequence[HandedConnection] = ()
    """Connections that its predecessor has left to a netproc."""
    ports: Sequence[int] = ()
    """Of every configured listener, the one that it has."""
    authorizer: Authorizer = field(default_factory=AllowAll)
    """Who may do what: asked by whoever decides a request."""
    login_secret: bytes = field(default=_SECRET, repr=False)
    """What nobody outside knows: what users that there are not are told is made of it."""
    spin_us: int = 0
    log_json: bool = False
    """Whether lines of the log are JSON."""
    name: str = field(default="")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """Every log folder; the first one is `data_dir`."""
        return (self.data_dir, *self.other_dirs)

    @property
    def errors(self) -> ErrorCounts:
        """Where this process counts the errors that it tells."""
        return self.counters.errors[self.processes.peers.index(self.me)]

    def log(self) -> Log:
        """The log of this process: made once, by whoever runs it."""
        name = str(self.me)
        levels = self.processes.log_levels
        most = self.config.int("penstock.audit.entries.max.per.second")
        ring, trail = self.events.writer(name), Trail(self.security.regions[name], most)
        return Log(
            name, ring=ring, levels=levels, json=self.log_json, trail=trail,
            bounds=self.bounds.regions[name],
        )  # fmt: skip

    @property
    def me(self) -> Peer:
        """My place in the process table."""
        return Peer(self.kind, self.index)
