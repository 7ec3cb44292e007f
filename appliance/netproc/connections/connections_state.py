"""State that the connections of one process share: its loop, memory and limits, and the lists of
waiting connections. C is the connection, which imports this.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from appliance.base.caller import Principal
from appliance.config.broker import BrokerConfig
from appliance.netproc.connections.login_session import Doorkeeper, LoginSession
from appliance.netproc.connections.long_answers import LongAnswers
from appliance.netproc.connections.receivers import HandoverTarget
from appliance.netproc.connections.request_time import Stopwatch
from appliance.netproc.files.page_cache import PageCache
from appliance.netproc.limits.connection_limits import ConnectionLimits
from appliance.netproc.memory.admission import Admission
from appliance.netproc.transport.tls_listeners import TlsListeners
from appliance.ring.arena import Arena
from appliance.ring.client_table import ClientRows
from appliance.ring.counters import AnswerCounts
from appliance.shell.bugs import Bugs
from appliance.shell.log import Log
from appliance.shell.loop import Loop

C = TypeVar("C")


class ConnectionsState(Generic[C]):
    """Shared state of the connections of a process, and the lists of waiting ones.

    heir: goes on with connections that are drained; without one they are hung up on. sealing: says
    who has shown a certificate. doorkeeper: says who has to log in.
    committed, applied: where the metadata log ends, and how far it is replayed here: far behind,
    nobody is read. dirty: have something to send in this turn. starving:
    look for room in the next turn. in_line: wait for memory for a long request, in their order.
    hungry: for a short one. cold: wait for the disk. long_answers: None: the loop sends them, too.
    latest: whose bytes came last; switched_ns: since when no other's came."""

    def __init__(
        self,
        loop: Loop,
        log: Log,
        watch: Stopwatch,
        memory: memoryview,
        config: BrokerConfig,
        counts: AnswerCounts,
        clients: ClientRows,
        committed: memoryview,
        listeners: Sequence[str] = (),
    ) -> None:
        """memory: the receive arena's. clients: where it is told who is connected. committed: the
        word that says how far the metadata is. listeners: their names; none: as configured."""
        self.counts = counts
        self.clients = clients
        self.listeners = list(listeners) or [one.name for one in config.opened()]
        self.loop = loop
        self.log = log
        self.bugs = Bugs(log)
        self.watch = watch
        self.memory = memory
        self.arena = Arena(len(memory))
        self.admission = Admission(self.arena, len(memory))
        self.page_cache = PageCache()
        self.long_answers: LongAnswers | None = None
        self.latest: C | None = None
        self.switched_ns = 0
        self.limits = ConnectionLimits()
        self.limits.handshakes = config.int("penstock.connection.handshakes.max.per.ip")
        self.frame_limit = min(config.int("socket.request.max.bytes"), len(memory) // 2)
        self.queued_limit = config.int("penstock.connection.queued.max.bytes")
        self.forwarded_limit = config.int("penstock.connection.control.max.requests")
        self.committed = committed
        self.applied = self.now_ns = 0  # of the metadata; of this turn
        self.open: dict[int, C] = {}
        self.dirty: list[C] = []
        self.starving: dict[C, None] = {}
        self.in_line: dict[C, None] = {}
        self.hungry: dict[C, None] = {}
        self.cold: dict[C, None] = {}
        self.heir: HandoverTarget[C] | None = None
        self.sealing: TlsListeners | None = None
        self.doorkeeper: Doorkeeper | None = None
        self.handshakes = 0  # rounds of them in this turn

    def request_limit(self, session: LoginSession | None) -> int:
        """Bytes of the longest request of a connection with that session now."""
        if session is None or session.known or self.doorkeeper is None:
            return self.frame_limit
        return min(self.frame_limit, self.doorkeeper.longest(session))

    def audit_handshake(
        self, listener: int, address: str, who: Principal | None = None, why: str = ""
    ) -> None:
        """A login by certificate, or a handshake that failed because of `why`."""
        if (trail := self.log.trail) is not None:
            principal = "" if who is None else f"{who.type}:{who.name}"
            where = (listener, self.listeners[listener])
            trail.note_login(where, "SSL", principal, address, "", why=why)

    def meet(self, listener: int, address: str, certificate: bytes) -> Principal:
        """The principal of a client's certificate (DER). Raises ValueError when
        ssl.principal.mapping.rules gives none."""
        assert self.sealing is not None, "a certificate where no TLS is spoken"
        principal = self.sealing.principal(self.listeners[listener], certificate)
        self.audit_handshake(listener, address, principal)
        return principal

    def leave_line(self, connection: C) -> None:
        """It waits for memory no more."""
        self.hungry.pop(connection, None)
        self.in_line.pop(connection, None)
        self.admission.in_line = bool(self.in_line)
