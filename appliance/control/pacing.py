"""Requests of clients over several turns: some take half a second, and hundreds may be there.

A request's bytes say roughly what it costs. When a turn has decided on its share the next ones
wait for the next turn, in their order. What other nodes ask is decided at once: votes, the metadata
log's Fetch and heartbeats keep elections from happening. Caller: `shell.py`.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from appliance.base.errors import UNKNOWN_SERVER_ERROR
from appliance.control.quorum_wire import SERVED
from appliance.handlers.admin import AdminContext
from appliance.ring.messages import ENSURE_TOPIC, FORWARD, Message

BYTES: Final = 16 << 10
"""Of requests that are decided in a turn before the next ones wait: some hundred rows."""

Decide = Callable[[int, Message, AdminContext | None], AdminContext | None]
"""(netproc, message, context of the decision before) → context for the next one."""
_AT_ONCE: Final = frozenset(SERVED) | {56, 62, 63, 67, 70, 73, 82}
"""Quorum's APIs; AlterPartition, registrations, BrokerHeartbeat, AllocateProducerIds,
AssignReplicasToDirs, UpdateRaftVoter."""


class PacedRequests:
    """decide: decides on one. caught: is told of an exception in that. reply: answers one. late:
    those that wait for one of the next turns."""

    __slots__ = ("_caught", "_decide", "_left", "_reply", "late")

    def __init__(
        self,
        decide: Decide,
        caught: Callable[[str, Exception], None],
        reply: Callable[[int, int, int, bytes], None],
    ) -> None:
        self._decide = decide
        self._caught = caught
        self._reply = reply
        self._left = BYTES
        self.late: deque[tuple[int, Message]] = deque()

    def decide_all(self, netproc: int, messages: list[Message]) -> None:
        """Decide on what one netproc asks, or keep it for the next turns."""
        context = None
        for message in messages:
            if message.op == FORWARD and message.b >> 16 in _AT_ONCE:
                context = self._decide_on(netproc, message, context)
            elif message.op not in (FORWARD, ENSURE_TOPIC):
                continue
            elif self.late or self._left < 0:
                self.late.append((netproc, message))
            else:
                self._left -= message.e
                context = self._decide_on(netproc, message, context)

    def run_turn(self) -> None:
        """Decide on what waits, as far as this turn has room."""
        self._left = BYTES
        context = None
        while self.late and self._left >= 0:
            netproc, message = self.late.popleft()
            self._left -= message.e
            context = self._decide_on(netproc, message, context)

    def _decide_on(
        self, netproc: int, message: Message, context: AdminContext | None
    ) -> AdminContext | None:
        try:
            return self._decide(netproc, message, context)
        except Exception as bug:
            api = message.b >> 16 if message.op == FORWARD else "a missing topic"
            self._caught(f"request {api}", bug)
            self._reply(netproc, message.token, UNKNOWN_SERVER_ERROR, b"")
            return None

    def drop_netproc(self, netproc: int) -> None:
        """It died: nobody waits for what it asked, and its memory is another one's."""
        self.late = deque(row for row in self.late if row[0] != netproc)
