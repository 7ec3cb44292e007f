"""Measures an I/O process's time for clients, which request_percentage quotas charge.

While some client has a quota on its requests, the time of a turn goes on the bills of those who
asked in it, by what they asked: a request weighs BASE, and a batch its bytes besides. Waking the
fetches that wait for a batch is on the bill of who sent the batch, as it is in Apache Kafka, and so
is a slice of a chore that falls into the turn; what threads do (syncs, moves) and what other I/O
processes ask is on nobody's. A bill (SPENT) goes before the answers of its turn. Nothing is
measured while nobody has such a quota.
"""

from collections.abc import Callable, Mapping
from typing import Final

from appliance.base.clock import Clock
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.quotas.limits import REQUEST, Entity
from appliance.ring.messages import APPEND, CANCEL, COORDINATE, Message
from appliance.ring.slots import pack_spent, unpack_append

BASE: Final = 1 << 17
"""What a request weighs: a small batch takes about as long as to write so many bytes (measured with
acks=1: 0.07 to 0.15 ms a batch, 0.5 ns a byte)."""

Handle = Callable[[NetprocPeer, list[Message], int], None]


class RequestTime:
    """askers: the network processes. on: whether somebody has such a quota. waiting: what was
    asked in this turn, by (network process, token of a request), as weights."""

    __slots__ = ("_askers", "_clock", "_since_ns", "on", "waiting")

    def __init__(self, clock: Clock, askers: Mapping[int, NetprocPeer]) -> None:
        self._clock = clock
        self._askers = askers
        self._since_ns = 0
        self.waiting: dict[tuple[int, int], int] = {}
        self.on = False

    def follow(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """The quotas of the image, whenever one has changed."""
        self.on = any(REQUEST in limits for limits in quotas.values())

    def handle_messages(
        self, handle: Handle, asker: NetprocPeer, messages: list[Message], now_ms: int
    ) -> None:
        """Decide on the messages by `handle`, on the bill of who sent them."""
        if not self.waiting:
            self._since_ns = self._clock.monotonic_ns()
        handle(asker, messages, now_ms)
        asked = self.waiting
        known = self._askers.get(asker.index) is asker
        for message in messages:
            if message.op != CANCEL:
                of = (asker.index, message.token) if known else _NOBODY
                asked[of] = asked.get(of, 0) + _weight(message)

    def release(self) -> bool:
        """Send the bills of the turn, before what is answered in it; True. Who does not take them
        now gets them with its answers."""
        spent = self._clock.monotonic_ns() - self._since_ns
        asked, self.waiting = self.waiting, {}
        whole = sum(asked.values())
        bills: dict[int, list[tuple[int, ...]]] = {}
        for (index, token), weight in asked.items():
            bills.setdefault(index, []).append(pack_spent(token, spent * weight // whole))
        for index, own in bills.items():
            if index != _NOBODY[0]:
                asker = self._askers[index]
                asker.out[:0] = own
                asker.push()
        return True


_NOBODY: Final = (-1, 0)
"""Another I/O process."""


def _weight(message: Message) -> int:
    if message.op == APPEND:
        length = unpack_append(message)[-2]
        return BASE + length
    return BASE + len(message.payload) if message.op == COORDINATE else BASE
