"""Requests that come while the transaction before them is being ended: they wait for its last
marker, which takes milliseconds. Kafka answers CONCURRENT_TRANSACTIONS at once, upon which clients
ask again after 20 to 100 ms, and so spend most of a short transaction asleep.

Invariant: whoever waits is decided when the id is at rest, or PATIENCE_MS after it came as Kafka
does at once; so nobody waits longer than a client would that asks again.
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.base.errors import PeerError
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.shard import Values
from appliance.coordinators.runtime.turn import Timed, Turn
from appliance.coordinators.transactions.states import PREPARED

PATIENCE_MS: Final = 100

Decide = Callable[[Turn[Any], Call, Any], None]
Refuse = Callable[[Turn[Any], Call, Any, int], Values]


class Waiting(Timed):
    """One request. decide, refuse: what becomes of it when it need not wait."""

    def __init__(
        self, transactional_id: str, call: Call, request: Any, decide: Decide, refuse: Refuse
    ) -> None:
        super().__init__()
        self.transactional_id = transactional_id
        self.call = call
        self._request = request
        self._decide = decide
        self._refuse = refuse

    def go_on(self, turn: Turn[Any]) -> None:
        """Decide it, whatever the state."""
        try:
            self._decide(turn, self.call, self._request)
        except PeerError as refused:
            turn.answer(self.call, self.refused(turn, refused.code))

    def refused(self, turn: Turn[Any], code: int) -> Values:
        """The answer with an error for all of it."""
        return self._refuse(turn, self.call, self._request, code)

    def wake_up(self, turn: Turn[Any]) -> None:
        waiting = turn.state.waiting.get(self.transactional_id, {})
        if waiting.get(self.call.token) is self:
            del waiting[self.call.token]
            self.go_on(turn)


def patient(name: Callable[[Call, Any], str | None], decide: Decide, refuse: Refuse) -> Decide:
    """A decision that waits while the transaction of the id that `name` finds is being ended; None:
    it is about no single one."""

    def handle(turn: Turn[Any], call: Call, request: Any) -> None:
        transactional_id = name(call, request)
        known = turn.state.known.get(transactional_id) if transactional_id else None
        if known is None or known.transaction.state not in PREPARED:
            decide(turn, call, request)
            return
        one = Waiting(known.transactional_id, call, request, decide, refuse)
        turn.state.waiting.setdefault(one.transactional_id, {})[call.token] = one
        turn.wake(one, turn.now_ms + PATIENCE_MS)

    return handle


def resume(turn: Turn[Any], transactional_id: str) -> None:
    """The id is at rest: whoever waits for that goes on, in the order in which they came."""
    for one in turn.state.waiting.pop(transactional_id, {}).values():
        one.go_on(turn)
