"""Requests that cost more than a turn has time for: their work goes on in the next turns.

A long request is decoded, asked and answered in steps of some hundred µs. Each turn does steps for
at most TURN_NS and then serves everybody else. One request after the other is done, in the order in
which they came, and what has begun goes first, so that few of them are in memory as objects. A
handler that splits a request at once does so in one step. Those that wait hold no more than their
bytes in the arena, and their connections are not read meanwhile.
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final

from appliance.base.clock import Clock
from appliance.base.errors import MalformedRequest
from appliance.config.bounds import PLAIN_REQUEST_BYTES
from appliance.handlers.exchange import WORK, Exchange, Host, Steps
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.request_time import Stopwatch
from appliance.netproc.in_flight.exchanges import NO_NUMBER
from appliance.netproc.requests.exchange_barrier import ExchangeBarrier
from appliance.netproc.requests.host import NetprocHost
from appliance.wire.messages import decode_in_slices, request_versions

TURN_NS: Final = 4_000_000
"""What the work of one turn may take: nobody waits longer for it than a client notices."""
MOST_UNDER_WAY: Final = 4
"""Requests in line that ask at a time: enough to keep the I/O processes busy."""
LONG: Final = 1 << 14
"""Bytes of a request from which on it is decoded in steps: shorter ones take less than a turn."""


class LongRequests:
    """watch: bills clients for it. barrier: ends what raises an exception."""

    __slots__ = (
        "_barrier",
        "_clock",
        "_host",
        "_most",
        "_under_way",
        "_watch",
        "in_line",
        "waiting",
    )

    def __init__(
        self, host: NetprocHost, clock: Clock, watch: Stopwatch, barrier: ExchangeBarrier
    ) -> None:
        self._host = host
        self._most = host.config.int("penstock.request.max.bytes")
        self._clock = clock
        self._watch = watch
        self._barrier = barrier
        self.waiting: deque[tuple[Exchange, Steps, Callable[[], None]]] = deque()
        self.in_line: deque[tuple[Exchange, Steps, Callable[[], None]]] = deque()
        self._under_way: list[Exchange] = []
        host.on_work = self.continue_with
        host.on_work_in_line = self.begin_in_line
        host.on_leave_line = self.leave_line

    def begin_long(self, host: Host, x: Exchange) -> None:
        """Let its handler begin, once the request is decoded if that takes several turns. Raises
        MalformedRequest for a request with more bytes than are taken."""
        size = x.end - x.position
        if size > self._most:
            raise MalformedRequest(
                f"{size} bytes, at most {self._most} are taken (penstock.request.max.bytes)",
                PLAIN_REQUEST_BYTES,
            )
        connection: Connection = x.connection
        slab = connection.framing.slab
        assert slab is not None, "its bytes lie in the arena"
        x.slab = slab.hold_slab()
        is_sliced = x.handler.slices and x.version in request_versions(x.handler.key)
        steps = _decoding(host, x) if is_sliced else iter(())
        host.hold_pending(x, WORK)
        x.connection.kept += 1
        self.waiting.append((x, steps, lambda: _begin(host, x)))

    def continue_with(self, x: Exchange, steps: Steps, then: Callable[[], None]) -> None:
        """Do these steps before those of others, which have not begun."""
        assert WORK not in x.pending, "one piece of work after the other"
        self._host.hold_pending(x, WORK)
        x.connection.kept += 1
        self.waiting.appendleft((x, steps, then))

    def begin_in_line(self, x: Exchange, steps: Steps, then: Callable[[], None]) -> None:
        """Continue with these steps when few others in line are under way."""
        self._host.hold_pending(x, WORK)
        x.connection.kept += 1
        self.in_line.append((x, steps, then))
        self._advance_line()

    def leave_line(self, x: Exchange) -> None:
        """Others in line may begin, though this one is not answered."""
        if x in self._under_way:
            self._under_way.remove(x)

    def _advance_line(self) -> None:
        while self.in_line:
            self._under_way = [one for one in self._under_way if _is_under_way(one)]
            if len(self._under_way) >= MOST_UNDER_WAY:
                return
            x, steps, then = self.in_line.popleft()
            if WORK not in x.pending or x.answer is not None:  # nobody waits for it any more
                self._over(x)
                continue
            self._under_way.append(x)
            self.waiting.appendleft((x, steps, then))

    def run_turn(self) -> None:
        """Do what there is time for in this turn, and one step at least."""
        self._advance_line()
        until_ns = self._clock.monotonic_ns() + TURN_NS
        while self.waiting:
            x, steps, then = self.waiting[0]
            if WORK not in x.pending or x.answer is not None:  # nobody waits for it any more
                self.waiting.popleft()
                self._over(x)
                continue
            if self._watch.running:
                self._watch.begin_account(x.connection.account)
            try:
                self._advance(x, steps, then, until_ns)
            except MalformedRequest as problem:
                self._refuse(x, problem)
            except Exception as bug:
                self._drop(x)
                self._barrier.fail(x, bug)
            if self._clock.monotonic_ns() >= until_ns:
                break
        if self._watch.running:
            self._watch.end_account()

    def _advance(self, x: Exchange, steps: Steps, then: Callable[[], None], until_ns: int) -> None:
        for _ in steps:
            if self._clock.monotonic_ns() >= until_ns:
                return
        self.waiting.popleft()
        del x.pending[WORK]
        x.connection.kept -= 1
        then()
        if x.number != NO_NUMBER:
            self._barrier.exchanges.end_if_done(x)

    def _over(self, x: Exchange) -> None:
        x.connection.kept -= 1
        if x.pending.pop(WORK, None) is not None:
            self._barrier.exchanges.end_if_done(x)

    def _refuse(self, x: Exchange, problem: MalformedRequest) -> None:
        self._drop(x)
        connection: Connection = x.connection
        why = f"{x.handler.name} v{x.version}: {problem}"
        connection.complain("refused-request", why, problem.bound)
        connection.close()
        if x.number != NO_NUMBER:  # its memory was held until now
            self._barrier.exchanges.end_if_done(x)

    def _drop(self, x: Exchange) -> None:
        """It ends, perhaps in the middle of its work."""
        if self.waiting and self.waiting[0][0] is x and WORK in x.pending:
            self.waiting.popleft()
            x.connection.kept -= 1
            del x.pending[WORK]
        let_go(x)


def _is_under_way(x: Exchange) -> bool:
    """True for one that still asks. What has arrived to be kept is kept, even of a connection that
    is closed."""
    if x.number == NO_NUMBER or x.answer is not None:
        return False
    return x.handler.keeps_body or not x.connection.closed


def let_go(x: Exchange) -> None:
    """The bytes of a request that waits to be decoded, or was, are needed no more."""
    if x.slab is not None and not x.handler.keeps_body:
        x.slab.let_go()
        x.slab = None


def _begin(host: Host, x: Exchange) -> None:
    x.handler.begin(host, x)
    let_go(x)  # a handler that decodes by itself has done so


def _decoding(host: Host, x: Exchange) -> Generator[None, None, Any]:
    body = bytes(host.memory[x.position : x.end])
    let_go(x)
    x.decoded = yield from decode_in_slices(x.handler.key, x.version, body)
