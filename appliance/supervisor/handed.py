"""Connections on their way from a network process to its successor, held here meanwhile.

A connection lives as long as somebody holds it: so a new process closes those that are not its own,
and the supervisor lets go of what a successor was forked with.
"""

from collections.abc import Iterator, Sequence

from appliance.shell import handed_connection
from appliance.shell.handed_connection import HandedConnection
from appliance.supervisor.bound_listeners import BoundListeners


class Handed:
    """of: the guests, by the place of the netproc."""

    def __init__(self, netprocs: int, guests: Sequence[HandedConnection] = ()) -> None:
        """guests: of the appliance before, for the first processes."""
        self.of: list[list[HandedConnection]] = [
            list(guests[one::netprocs]) for one in range(netprocs)
        ]

    def all(self) -> Iterator[HandedConnection]:
        """Yields the connections of all places."""
        for guests in self.of:
            yield from guests

    def take_connections(self, doors: BoundListeners) -> None:
        """Take what the netprocs have sent."""
        for netproc, guests in enumerate(self.of):
            end = doors.find_end(netproc)
            if end is not None:
                guests += handed_connection.receive_all(end)

    def let_go(self, netproc: int) -> None:
        """A successor has them, or nobody will."""
        guests, self.of[netproc] = self.of[netproc], []
        for guest in guests:
            guest.close()

    def close(self, but: int | None = None) -> None:
        """Let go of all. but: the netproc whose guests stay, in this process."""
        for netproc in range(len(self.of)):
            if netproc != but:
                self.let_go(netproc)
