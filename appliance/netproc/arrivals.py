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

from appliance.quotas.limits import ARRIVAL, CONNECTION
from appliance.quotas.meters import Meters
from appliance.shell.loop import Loop

_MOST_HELD: Final = 1024
_NS: Final = 1_000_000


class Door(Protocol):
    """A listener."""

    sock: socket.socket


class Arrivals:
    """Connections on their way in, of one network process."""

    __slots__ = ("_closed", "_held", "_loop", "_meters", "_numbers")

    def __init__(self, meters: Meters, loop: Loop) -> None:
        self._meters = meters
        self._loop = loop
        self._numbers = count()
        self._held: list[tuple[int, int, socket.socket]] = []
        self._closed: list[tuple[int, int, Door]] = []

    def hold(self, sock: socket.socket, address: str, now_ns: int) -> int:
        """Whether this address is too fast: the pause in ms after which its socket is closed, 0
        when it may come in."""
        now_ms = now_ns // _NS
        pause_ms = self._meters.charge_unless_over(CONNECTION, address, "", 1, now_ms)
        if pause_ms:
            heapq.heappush(self._held, (now_ns + pause_ms * _NS, next(self._numbers), sock))
            if len(self._held) > _MOST_HELD:
                heapq.heappop(self._held)[2].close()
        return pause_ms

    def came_in(self, door: Door, now_ns: int) -> bool:
        """One more has come by this listener; whether it accepts the next one."""
        pause_ms = self._meters.charge(ARRIVAL, "", "", 1, now_ns // _NS)
        if pause_ms:
            self.shut(door, now_ns + pause_ms * _NS)
        return not pause_ms

    def shut(self, door: Door, until_ns: int) -> None:
        """Accept nobody there before `until_ns`."""
        self._loop.modify(door.sock.fileno(), 0)
        heapq.heappush(self._closed, (until_ns, next(self._numbers), door))

    def turn(self, now_ns: int) -> None:
        """Close and open whatever has waited long enough."""
        while self._held and self._held[0][0] <= now_ns:
            heapq.heappop(self._held)[2].close()
        while self._closed and self._closed[0][0] <= now_ns:
            door = heapq.heappop(self._closed)[2]
            self._loop.modify(door.sock.fileno(), select.EPOLLIN)

    def close(self) -> None:
        """Nobody is accepted any more."""
        self._closed.clear()

    def wait_ms(self, now_ns: int, longest_ms: int) -> int:
        """How long the loop may wait until the next pause is over."""
        for heap in (self._held, self._closed):
            if heap:
                longest_ms = max(0, min(longest_ms, -(-(heap[0][0] - now_ns) // _NS)))
        return longest_ms
