"""How fast connections may come: connection_creation_rate of an address (KIP-612), and
max.connection.creation.rate of the broker.

An address that is too fast is not refused at once, which would make it try again at once: its
connection stays open and unread for the pause and is closed then. Over the broker's rate a listener
stops accepting for the pause, and who comes waits in its backlog. Called by the server.
"""

import heapq
import select
import socket
from itertools import count
from typing import Final, Protocol

from appliance.base.caller import Principal
from appliance.base.clock import Clock
from appliance.config.bounds import CONNECTION_RATE, setting_of
from appliance.netproc.limits.connection_limits import ConnectionLimits
from appliance.quotas.limits import ARRIVAL, CONNECTION
from appliance.quotas.meters import Meters
from appliance.shell.log import WARNING, Log
from appliance.shell.loop import Loop

_MOST_HELD: Final = 1024
_NS: Final = 1_000_000


class Door(Protocol):
    """A listener. number: its place among the configured ones. principal: of everybody who comes
    there, None: nobody is known by that."""

    sock: socket.socket
    number: int
    principal: Principal | None


class ConnectionRate:
    """Connections on their way in, of one network process. held: to be closed when. shut_doors: to
    be opened when. Heaps; read them only."""

    __slots__ = (
        "_clock",
        "_limits",
        "_log",
        "_loop",
        "_meters",
        "_numbers",
        "held",
        "shut_doors",
    )

    def __init__(
        self, meters: Meters, limits: ConnectionLimits, loop: Loop, clock: Clock, log: Log
    ) -> None:
        self._meters = meters
        self._limits = limits
        self._loop = loop
        self._clock = clock
        self._log = log
        self._numbers = count()
        self.held: list[tuple[int, int, socket.socket]] = []
        self.shut_doors: list[tuple[int, int, Door]] = []

    def let_in(self, sock: socket.socket, address: str) -> bool:
        """Admit an accepted socket by the limits and the quota of its address. True: it counts as a
        connection. False: it is closed, at once or when its pause is over."""
        now_ns = self._clock.monotonic_ns()
        pause_ms = self._meters.charge_unless_over(CONNECTION, address, "", 1, now_ns // _NS)
        if pause_ms:
            why = f"{CONNECTION} of this address: it is hung up on in {pause_ms} ms"
            self._log.event_from(
                WARNING, "connection-throttled", address, bound=CONNECTION_RATE, why=why
            )
            heapq.heappush(self.held, (now_ns + pause_ms * _NS, next(self._numbers), sock))
            if len(self.held) > _MOST_HELD or self._limits.is_full(len(self.held)):
                heapq.heappop(self.held)[2].close()
            return False
        refused = self._limits.admit(address, len(self.held))
        if refused is not None:
            told = refused._asdict()
            self._log.event_from(WARNING, "connection-refused", address, **told)
            sock.close()
        return refused is None

    def accept_next(self, door: Door) -> bool:
        """One more has come by this listener; whether it accepts the next one at once."""
        pause_ms = self._meters.charge(ARRIVAL, "", "", 1, self._clock.monotonic_ns() // _NS)
        if pause_ms:
            why = f"{setting_of(CONNECTION_RATE)}: no connection is accepted for {pause_ms} ms"
            told = {"bound": CONNECTION_RATE, "why": why}
            self._log.event_seldom(WARNING, "connection-throttled", **told)
            self.shut(door, pause_ms * _NS)
        return not pause_ms

    def shut(self, door: Door, pause_ns: int) -> None:
        """Accept nobody there for so long."""
        self._loop.modify(door.sock.fileno(), 0)
        until_ns = self._clock.monotonic_ns() + pause_ns
        heapq.heappush(self.shut_doors, (until_ns, next(self._numbers), door))

    def reopen_due(self, now_ns: int) -> None:
        """Close and open whatever has waited long enough."""
        while self.held and self.held[0][0] <= now_ns:
            heapq.heappop(self.held)[2].close()
        while self.shut_doors and self.shut_doors[0][0] <= now_ns:
            door = heapq.heappop(self.shut_doors)[2]
            self._loop.modify(door.sock.fileno(), select.EPOLLIN)

    def forget_door(self, door: Door) -> None:
        """It is closed: a pause does not open it again."""
        self.shut_doors[:] = [one for one in self.shut_doors if one[2] is not door]
        heapq.heapify(self.shut_doors)

    def close(self) -> None:
        """Keep every listener shut: paused ones do not open again."""
        self.shut_doors.clear()

    def wait_ms(self, now_ns: int, longest_ms: int) -> int:
        """How long the loop may wait until the next pause is over."""
        for heap in (self.held, self.shut_doors):
            if heap:
                longest_ms = max(0, min(longest_ms, -(-(heap[0][0] - now_ns) // _NS)))
        return longest_ms
