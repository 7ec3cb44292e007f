"""Looks whether this node is cut off from the others, and lets its partitions act upon that.

The controller's answers are seen by control, which says so in the process table; fetches of other
replicas come here. What `Isolation` makes of both counts for every partition that this process
leads and that somebody else could lead. Called by the chores, as often as they look at all.
"""

from typing import Final, Protocol

from appliance.config.broker import BrokerConfig
from appliance.ioproc.turn.core import Core
from appliance.replication.isolation import Isolation
from appliance.ring.process_table import Peer
from appliance.shell.log import NOTICE, WARNING, Log

_LEASE_MS: Final = 500
"""The controller may have heard us so much later than we asked, and takes a moment to fence."""
_FETCH_MS: Final = 1_000


def isolation(config: BrokerConfig) -> Isolation:
    """By the settings of this node, which are to be those of the controllers and replicas."""
    fetch_ms = config.int("replica.fetch.wait.max.ms") + _FETCH_MS
    return Isolation(config.silence_ms + _LEASE_MS, fetch_ms)


class IsolationTable(Protocol):
    """`ring.process_table.ProcessTable`."""

    @property
    def answered_ms(self) -> int: ...

    def set_isolated(self, me: Peer, since_ms: int) -> None: ...


class IsolationCheck:
    """me: this process, in that table."""

    __slots__ = ("_core", "_events", "_isolation", "_me", "_said", "_table")

    def __init__(
        self, isolation: Isolation, core: Core, table: IsolationTable, me: Peer, events: Log
    ) -> None:
        self._isolation = isolation
        self._core = core
        self._table = table
        self._me = me
        self._events = events
        self._said = False  # that it is isolated: who leads nothing has nothing to say

    @property
    def doubts(self) -> bool:
        """True if this node may be isolated, which the next check decides, or is."""
        return self._isolation.doubts

    def tick(self, now_ns: int) -> None:
        """now_ns: monotonic."""
        served, was = self._core.served, self._isolation.isolated
        fetched, served.fetched = served.fetched, False
        now_ms, answered_ms = now_ns // 1_000_000, self._table.answered_ms
        isolated = self._isolation.is_isolated(now_ms, answered_ms, fetched=fetched)
        if isolated == was:
            return
        # Before anybody is told that we do not lead.
        self._table.set_isolated(self._me, now_ms if isolated else 0)
        deserted = self._core.isolate(isolated=isolated)
        if deserted:
            self._events.event(WARNING, "isolated", partitions=deserted)
        elif self._said:
            self._events.event(NOTICE, "isolated-no-more")
        self._said = bool(deserted)
