"""Reports to the service manager: watchdog, progress of the start, and status.

Its watchdog is fed while this process turns and every child has turned within `STILL_S`. A child
whose loop stands still is killed and replaced long before that (`fleet.py`), so only one that
nobody can replace, because it does not die or hangs in its start, ends with all. In the orderly end
each stage has its own limit, and nobody is looked at. Called by `supervisor/main.py` at each turn.
"""

from typing import Final

from appliance.ring.tables import Tables
from appliance.shell.log import ERROR, Log
from appliance.shell.patience import LOOK_S
from appliance.supervisor.fleet import SECOND, Fleet
from appliance.supervisor.notify import Manager
from appliance.supervisor.status_line import StatusLine

_NOBODY_ASKS_NS: Final = 3600 * SECOND


class ServiceManager:
    """standing: for who knows more of it."""

    def __init__(self, manager: Manager, fleet: Fleet, tables: Tables, log: Log) -> None:
        self._manager = manager
        self.standing = StatusLine(tables)
        self._fleet = fleet
        self._log = log
        self._due_ns = 0
        self._still = ""
        self._ready = False

    def send_state(self, state: str) -> None:
        """READY=1 or STOPPING=1, with a fresh status behind it."""
        self._ready = state == "READY=1"
        self._manager.send_states(state)
        self._due_ns = self.standing.due_ns = 0

    def reloads(self, now_ns: int) -> None:
        """The settings are being read again; until `reloaded`."""
        if self._ready:
            self._manager.send_states("RELOADING=1", f"MONOTONIC_USEC={now_ns // 1000}")

    def reloaded(self) -> None:
        """See `reloads`."""
        if self._ready:
            self.send_state("READY=1")

    def report_due(self, now_ns: int, *, ready: bool) -> int:
        """Tell what is due. When (ns) to come again at the latest."""
        manager = self._manager
        if not manager.is_there:
            return now_ns + _NOBODY_ASKS_NS
        if self._gets_on(now_ns):
            if ready or self._fleet.draining:
                manager.lives(now_ns)
            else:
                manager.gets_on(now_ns)
        if now_ns >= self._due_ns:
            manager.status(self.standing.line(now_ns, ready=ready))
            self._due_ns = now_ns + int(LOOK_S * SECOND)
        return min(self._due_ns, now_ns + (manager.feeds_ns or SECOND))

    def _gets_on(self, now_ns: int) -> bool:
        if self._fleet.draining:
            return True
        still = self._fleet.still(now_ns)
        if still and still != self._still:
            why = "it hangs and cannot be replaced"
            self._log.event(ERROR, "appliance-stuck", child=still, cause=why)
        self._still = still
        return not still
