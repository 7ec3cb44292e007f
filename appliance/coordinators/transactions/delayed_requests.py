"""Requests that come too early: while the transaction before them is being ended they wait for its
last marker, which takes milliseconds, and without a producer id to be had for the next block of
them. Kafka answers CONCURRENT_TRANSACTIONS or COORDINATOR_LOAD_IN_PROGRESS at once, upon which
clients ask again after 20 to 500 ms, and so spend most of a short transaction asleep.

Invariant: whoever waits is decided when that has come, or when its patience is over as Kafka does
at once; so nobody waits longer than a client would that asks again.
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.base.errors import CONCURRENT_TRANSACTIONS, COORDINATOR_LOAD_IN_PROGRESS, PeerError
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.shard import Values
from appliance.coordinators.runtime.turn import Timed, Turn
from appliance.coordinators.transactions.states import PREPARED

PATIENCE_MS: Final = 100
"""For markers."""
ID_PATIENCE_MS: Final = 500
"""For a producer id: control has to write a record down, and may be starting."""
AN_ID: Final = ""
"""What those wait for that need a producer id; no transactional id is empty."""

Decide = Callable[[Turn[Any], Call, Any], None]
Refuse = Callable[[Turn[Any], Call, Any, int], Values]


class TooEarly(PeerError):
    """A decision that may wait. wanted: the transactional id that must be at rest first, or
    AN_ID."""

    def __init__(self, wanted: str) -> None:
        if wanted == AN_ID:
            super().__init__(COORDINATOR_LOAD_IN_PROGRESS, "a producer id is being asked for")
        else:
            super().__init__(CONCURRENT_TRANSACTIONS, f"a transaction of {wanted} is being ended")
        self.wanted = wanted


class WaitingRequest(Timed):
    """One request. came_ms: when. decide, refuse: what becomes of it when it need not wait."""

    def __init__(
        self, call: Call, request: Any, came_ms: int, decide: Decide, refuse: Refuse
    ) -> None:
        super().__init__()
        self.call = call
        self._request = request
        self._came_ms = came_ms
        self._decide = decide
        self._refuse = refuse
        self._wanted = AN_ID

    def decide_or_wait(self, turn: Turn[Any]) -> None:
        """Decide it, or let it wait for what it lacks now."""
        try:
            self._decide(turn, self.call, self._request)
        except TooEarly as early:
            if not self.wait(turn, early.wanted):
                turn.answer(self.call, self.refused(turn, early.code))
        except PeerError as refused:
            turn.answer(self.call, self.refused(turn, refused.code))

    def wait(self, turn: Turn[Any], wanted: str) -> bool:
        """Wait for that; False when it has waited long enough."""
        patience_ms = PATIENCE_MS if wanted else ID_PATIENCE_MS
        until_ms = self._came_ms + patience_ms
        if turn.now_ms >= until_ms:
            return False
        self._wanted = wanted
        turn.state.waiting.setdefault(wanted, {})[self.call.token] = self
        turn.wake_at(self, until_ms)
        return True

    def refused(self, turn: Turn[Any], code: int) -> Values:
        """The answer with an error for all of it."""
        return self._refuse(turn, self.call, self._request, code)

    def wake_up(self, turn: Turn[Any]) -> None:
        waiting = turn.state.waiting.get(self._wanted, {})
        if waiting.get(self.call.token) is self:
            del waiting[self.call.token]
            self.decide_or_wait(turn)


def patient(name: Callable[[Call, Any], str | None], decide: Decide, refuse: Refuse) -> Decide:
    """A decision that waits while the transaction of the id that `name` finds is being ended (None:
    it is about no single one), and for what it raises TooEarly for."""

    def handle(turn: Turn[Any], call: Call, request: Any) -> None:
        transactional_id = name(call, request)
        known = turn.state.known.get(transactional_id) if transactional_id else None
        if known is not None and known.transaction.state in PREPARED:
            wanted = known.transactional_id
        else:
            try:
                decide(turn, call, request)
                return
            except TooEarly as early:
                wanted = early.wanted
        WaitingRequest(call, request, turn.now_ms, decide, refuse).wait(turn, wanted)

    return handle


def resume(turn: Turn[Any], wanted: str) -> None:
    """The id is at rest, or producer ids are there: whoever waits for that goes on, in the order in
    which they came."""
    for one in turn.state.waiting.pop(wanted, {}).values():
        one.decide_or_wait(turn)
