"""How the appliance stands, in a line that a person understands: for `systemctl status`.

A value machine over the tables, which are looked at as seldom as their size asks for. Called by
`supervisor/service_manager.py`.
"""

from time import monotonic_ns
from typing import Final

from appliance.ring import client_table
from appliance.ring.partition_table import NOT_OPEN, OFFLINE, SIZE_BYTES, STATUS
from appliance.ring.process_table import READY, STATE_NAMES
from appliance.ring.tables import Tables

_REST: Final = 200
"""Times as long as a look at all rows took: with very many it is half a percent of a core."""
_REST_LEAST_NS: Final = 1_000_000_000
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")


def sized(count: int) -> str:
    """Bytes as people read them."""
    if count < 1024:
        return f"{count} bytes"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f} {_UNITS[power - 1]}"


def counted(number: int, one: str) -> str:
    """A number with its noun."""
    return f"{number} {one}{'' if number == 1 else 's'}"


class StatusLine:
    """due_ns: when the tables of partitions are looked at again. needs_restart: names of the
    settings that were changed in the file and cannot be while it runs."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.due_ns = 0
        self._holders: list[int] = []
        self._topics = 0
        self._size = 0
        self._rows = 0
        self._opening = 0
        self._offline = 0
        self.needs_restart: tuple[str, ...] = ()

    def line(self, now_ns: int, *, ready: bool) -> str:
        """As it is now. ready: clients are served since the start."""
        processes = self._tables.processes
        if processes.drain:
            return "ending: what was asked is answered, then everything goes to the disk"
        if processes.leaving:
            return "leaving the cluster: others take over what is led here"
        if now_ns >= self.due_ns:
            began = monotonic_ns()
            self._look()
            self.due_ns = now_ns + max(_REST_LEAST_NS, (monotonic_ns() - began) * _REST)
        if not ready:
            if self._rows and self._opening:
                return f"starting: {self._rows - self._opening} of {self._rows} partitions are open"
            return "starting"
        parts = [*self._troubles(), self._serving()]
        if self.needs_restart:
            parts.append(f"a restart is needed for {', '.join(self.needs_restart)}")
        return "; ".join(parts)

    def _look(self) -> None:
        partitions = self._tables.partitions
        holders = partitions.holders()
        if holders != self._holders:
            self._holders = holders
            self._topics = partitions.topics()
        lives = [holder & 1 for holder in holders]
        states = [
            state for state, there in zip(partitions.column(STATUS), lives, strict=False) if there
        ]
        self._rows = len(states)
        self._opening, self._offline = states.count(NOT_OPEN), states.count(OFFLINE)
        sizes = partitions.column(SIZE_BYTES)
        self._size = sum(size for size, there in zip(sizes, lives, strict=False) if there)

    def _serving(self) -> str:
        clients = self._tables.clients
        connected = clients.left_out + sum(
            use & 1 for (uses,) in clients.columns(client_table.USE) for use in uses
        )
        return (
            f"serving {counted(self._topics, 'topic')}, {counted(connected, 'client')},"
            f" {sized(self._size)}"
        )

    def _troubles(self) -> list[str]:
        """The worst first."""
        processes = self._tables.processes
        found = []
        if any(processes.without_room(peer) for peer in processes.peers):
            found.append("disk full: writes are refused")
        for peer in processes.peers:
            state = processes.state(peer)
            if state != READY:
                found.append(f"{peer} is {STATE_NAMES[state]}")
        if self._offline:
            found.append(f"{self._offline} of {counted(self._rows, 'partition')} are offline")
        count, away = processes.nodes
        if count > 1 and away:
            found.append(f"cluster: {away} of {counted(count, 'node')} away")
        return found
