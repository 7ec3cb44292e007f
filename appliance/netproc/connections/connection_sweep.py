"""Once a second, each connection: hang up on those that are idle, stand still in the middle of
something or send a request too slowly, and take back memory that lies unused.

Called by all connections' keeper.
"""

from typing import Final

from appliance.config.bounds import SLOW, STILL
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connection_states import HANDSHAKE, MUTED, OPEN
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.connections.frame_pace import FramePace

HANDSHAKE_NS: Final = 10_000_000_000
"""How long a handshake may take in all, however often something moves."""
_QUIET_NS: Final = 1_000_000_000
_SECOND_NS: Final = 1_000_000_000


class ConnectionSweep:
    """idle_ns: how long a connection may ask nothing. patience_ns: how long it may stand still in
    the middle of something. least_rate: bytes/s at which a request has to arrive; 0: any."""

    __slots__ = ("_idle_ns", "_least_rate", "_patience_ns", "_shared")

    def __init__(
        self, shared: ConnectionsState[Connection], idle_ns: int, patience_ns: int, least_rate: int
    ) -> None:
        self._shared = shared
        self._idle_ns = idle_ns
        self._patience_ns = patience_ns
        self._least_rate = least_rate

    def sweep(self, connection: Connection, now_ns: int) -> None:
        """Say how much it has been, hang up on it or free what it does not use."""
        shared = self._shared
        connection.sending.publish_counts(shared.clients, connection.row, shared.now_ns)
        if (
            (connection.state == MUTED and connection.pause_until_ns > now_ns)
            or connection in shared.in_line
            or connection in shared.hungry
        ):
            connection.moved_ns = now_ns  # it is we who do not read
        framing, sending = connection.framing, connection.sending
        still = now_ns - max(connection.moved_ns, sending.moved_ns)
        unfinished = framing.unfinished()
        half = connection.state == HANDSHAKE or connection.transport.wants != 0 or unfinished != 0
        session = connection.session
        if connection.state == HANDSHAKE and now_ns - connection.since_ns > HANDSHAKE_NS:
            connection.complain("no-progress", f"no handshake in {HANDSHAKE_NS // 10**9} s", STILL)
            connection.close()
        elif session is not None and not session.known and now_ns > session.deadline_ns:
            connection.complain("no-progress", "it has not logged in within 10 s", STILL)
            connection.close()
        elif (half or sending.out) and not sending.queue and still > self._patience_ns:
            connection.complain("no-progress", f"nothing moved for {still // 10**6} ms", STILL)
            connection.close()
        elif unfinished and self._is_too_slow(connection, now_ns, unfinished):
            why = f"a request of {framing.claimed()} bytes arrives too slowly"
            connection.complain("no-progress", why, SLOW)
            connection.close()
        elif still > self._idle_ns and not half and sending.idle():
            connection.close()
        elif still > _QUIET_NS:
            framing.rest()

    def _is_too_slow(self, connection: Connection, now_ns: int, have: int) -> bool:
        """Its frame is further behind the least rate than we have patience; where others
        wait for memory, the whole frame has to come within that time."""
        pace = connection.pace
        if connection.state != OPEN or pace is None:
            connection.pace = FramePace(now_ns, have) if connection.state == OPEN else None
            return False
        rate, framing = self._least_rate, connection.framing
        if self._shared.admission.in_line and framing.slab is not None:
            rate = max(rate, framing.claimed() * _SECOND_NS // self._patience_ns)
        return rate > 0 and pace.measure_behind_ns(now_ns, have, rate) > self._patience_ns
