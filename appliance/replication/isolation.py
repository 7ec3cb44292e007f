"""Isolation of this node, as far as a leader here can tell: other nodes lead already or soon, and
writes here wait for replicas that will not fetch.

    among others ─ no answer of the controller, no fetch of a replica, for so long ─▶ doubted
      ▲                                                                     still at the next look│
      └────────── an answer, or a fetch ───────────── isolated ◀────────────────────────┘

Two witnesses: the active controller answers heartbeats, other replicas fetch. A cluster without a
controller goes on, because its replicas fetch; a controller that answers knows best who is in sync.
A node that was fenced is fetched from by nobody, although some may still reach it. It refuses
nothing that could be acknowledged: so it may be wrong about a node that is merely late, whose
clients ask again.

No clock: times come in, in ms of one that never goes back.
"""

from typing import Final

UNKNOWN: Final = 0
"""No controller has answered yet, or there is none to ask."""
_TWICE_MS: Final = 50
"""After so long it is looked at again before it is believed: what says otherwise may lie there
unread."""


class Isolation:
    """lease_ms: a broker that the controller has not heard for so long is fenced. fetch_ms:
    replicas fetch more often than that. isolated: by the last look."""

    __slots__ = ("_doubted_ms", "_fetch_ms", "_fetched_ms", "_lease_ms", "isolated")

    def __init__(self, lease_ms: int, fetch_ms: int) -> None:
        assert fetch_ms > 0 and lease_ms > 0
        self._lease_ms = lease_ms
        self._fetch_ms = fetch_ms
        self._fetched_ms = self._doubted_ms = UNKNOWN
        self.isolated = False

    @property
    def doubts(self) -> bool:
        """True if no other node was heard at the last check."""
        return self._doubted_ms != UNKNOWN

    def is_isolated(self, now_ms: int, answered_ms: int, *, fetched: bool) -> bool:
        """Returns whether the node is isolated. answered_ms: when it was that a heartbeat left
        which the controller answered, the last one, or UNKNOWN. fetched: some replica has, since
        the last look."""
        if fetched:
            self._fetched_ms = now_ms
        alone = (
            answered_ms != UNKNOWN
            and now_ms - answered_ms >= self._lease_ms
            and now_ms - self._fetched_ms >= self._fetch_ms
        )
        if not alone:
            self._doubted_ms = UNKNOWN
        elif self._doubted_ms == UNKNOWN:
            self._doubted_ms = now_ms
        self.isolated = alone and now_ms - self._doubted_ms >= _TWICE_MS
        return self.isolated
