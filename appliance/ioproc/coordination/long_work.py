"""Long requests of one kind of coordinator: their work in steps, some of them in each turn.

Decoding, what a shard prepares, and encoding the answer take many turns; the decision between them
takes one. One piece of work after the other is done, in the order in which they came, answers
first; short requests are decided between the steps. Called by `host`.
"""

from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from appliance.base import errors
from appliance.base.clock import Clock
from appliance.base.errors import MalformedRequest
from appliance.ioproc.coordination.coordinator_partition import LedCoordinator
from appliance.ioproc.coordination.pending_requests import PendingRequest, PendingRequests
from appliance.ring.counters import ErrorCounts
from appliance.wire import error_codes
from appliance.wire.messages import decode_in_slices
from appliance.wire.plain_sliced import encode_in_slices

Steps = Generator[None, None, None]
SLICE_NS: Final = 1_500_000
"""How long the steps of one turn may take, for each kind of coordinator."""
LONG_ANSWER: Final = 1 << 14
"""Bytes of an answer from which on it counts as work of its turn."""
LONG_ANSWERS: Final = frozenset({9, 11, 15, 16, 65, 66, 69})
"""APIs with answers that may be much longer than their requests."""
MANY_ROWS: Final = 512
"""Rows of an answer that are encoded at once, some hundred µs."""


def has_many(values: Mapping[str, Any]) -> bool:
    """True if an answer has more than MANY_ROWS structs, at whatever depth."""
    count = 0
    levels: list[Any] = [values]
    while levels:
        for value in levels.pop().values():
            if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
                count += len(value)
                if count > MANY_ROWS:
                    return True
                levels += value
    return False


class LongWork:
    """put: answers a request. tell_bug: is told what an exception was about. listing: the API that
    asks all partitions. answered: bytes of long answers."""

    __slots__ = (
        "_answers",
        "_clock",
        "_counts",
        "_last",
        "_listing",
        "_put",
        "_requests",
        "_tell_bug",
        "_undecided",
        "answered",
    )

    def __init__(
        self,
        clock: Clock,
        requests: PendingRequests,
        counts: ErrorCounts,
        put: Callable[[PendingRequest, int, bytes], None],
        tell_bug: Callable[[str], None],
        listing: int,
    ) -> None:
        self._clock = clock
        self._requests = requests
        self._counts = counts
        self._put = put
        self._tell_bug = tell_bug
        self._listing = listing
        self._last: tuple[int, int, bytes, Any] = (-1, -1, b"", None)
        self._answers: deque[tuple[PendingRequest, Steps]] = deque()
        self._undecided: deque[tuple[PendingRequest, Steps]] = deque()
        self.answered = 0

    @property
    def busy(self) -> bool:
        """True if the next turn has something to do here."""
        return bool(self._answers or self._undecided)

    def decide(
        self,
        asked: PendingRequest,
        led: LedCoordinator | None,
        decide: Callable[[PendingRequest, int], None],
    ) -> None:
        """Decode this request and prepare its decision over the next turns, and then decide it."""
        self._undecided.append((asked, self._decide(asked, led, decide)))

    def _decide(
        self,
        asked: PendingRequest,
        led: LedCoordinator | None,
        decide: Callable[[PendingRequest, int], None],
    ) -> Steps:
        call = asked.call
        assert asked.body is not None, "a short one is decided at once"
        try:
            request = yield from self._decode(call.api_key, call.version, asked.body)
        except MalformedRequest:
            if call.token in self._requests.asked:  # its netproc lives
                self._put(asked, errors.INVALID_REQUEST, b"")
            return
        if led is not None:
            call = replace(call, prepared=(yield from led.prepare(call, request)))
        if call.token in self._requests.asked:
            asked = asked._replace(call=call, request=request, body=b"")
            self._requests.asked[call.token] = asked
            decide(asked, self._clock.wall_ms())
            self._requests.forget_rows(call.token)

    def _decode(self, key: int, version: int, body: bytes) -> Generator[None, None, Any]:
        """The request. One that goes to all partitions is decoded once for those that are led
        here."""
        if (key, version, body) != self._last[:3]:
            request = yield from decode_in_slices(key, version, body)
            if key != self._listing:
                return request
            self._last = key, version, body, request
        return self._last[3]

    def answer(self, asked: PendingRequest, values: Mapping[str, Any]) -> None:
        """Encode an answer over the next turns, and then send it: before other requests are
        decoded, so that few are in memory as objects."""
        self.answered += LONG_ANSWER
        self._answers.append((asked, self._answer(asked, values)))

    def _answer(self, asked: PendingRequest, values: Mapping[str, Any]) -> Steps:
        key, version = asked.call.api_key, asked.call.version
        for code in (yield from error_codes.told_in_slices(key, version, values)):
            self._counts.failed(key, code)
        body = yield from encode_in_slices(key, version, values)
        if asked.call.token in self._requests.asked:
            self._put(asked, errors.NONE, body)

    def run_turn(self) -> None:
        """Do what there is time for in this turn, and one step at least."""
        if not self.busy:
            return
        until_ns = self._clock.monotonic_ns() + SLICE_NS
        while queue := self._answers or self._undecided:
            asked, steps = queue[0]
            try:
                next(steps)
            except StopIteration:
                queue.popleft()
            except Exception:
                queue.popleft()
                self._tell_bug(f"API {asked.call.api_key}")
                if asked.call.token in self._requests.asked:
                    self._put(asked, errors.UNKNOWN_SERVER_ERROR, b"")
            if self._clock.monotonic_ns() >= until_ns:
                return
