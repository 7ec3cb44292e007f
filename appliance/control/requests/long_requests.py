"""Long requests are decoded before they are decided, and their answers encoded afterwards, in steps
of some hundred rows: `paced_requests.py` does some in each turn.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

from appliance.base.errors import MalformedRequest
from appliance.control.requests.pending_answers import Body, Unencoded
from appliance.handlers.admin import Api
from appliance.handlers.admin_apis import APIS
from appliance.ring.counters import ErrorCounts
from appliance.wire import error_codes
from appliance.wire.build import response
from appliance.wire.messages import decode_in_slices, decode_request, encode_response
from appliance.wire.plain_sliced import encode_in_slices


class _Decoded(NamedTuple):
    """problem: what was wrong with it. parts: to decide it in, none for a decision of all of it."""

    key: int
    version: int
    body: bytes
    request: Any
    problem: MalformedRequest | None
    parts: Sequence[Any]


class DecodedAhead:
    """The long request that is decided next. counts: of the errors that are answered."""

    __slots__ = ("_counts", "_decoded")

    def __init__(self, counts: ErrorCounts) -> None:
        self._counts = counts
        self._decoded: _Decoded | None = None

    def decode(self, key: int, version: int, body: bytes) -> Generator[None, None, None]:
        """Steps that decode it, for `request`."""
        request, wrong, api = None, None, APIS.get(key)
        parts: Sequence[Any] = ()
        try:
            request = yield from decode_in_slices(key, version, body)
            if api is not None and api.split is not None:
                parts = yield from api.split(request)
        except MalformedRequest as problem:
            wrong = problem
        self._decoded = _Decoded(key, version, body, request, wrong, parts)

    def forget_decoded(self) -> None:
        """It is decided."""
        self._decoded = None

    def request(self, key: int, version: int, body: bytes) -> Any:
        """The request in `body`. Raises MalformedRequest."""
        known = self._decoded
        if known is None or known[:3] != (key, version, body):
            return decode_request(key, version, body)
        if known.problem is not None:
            raise known.problem
        return known.request

    def parts(self, api: Api, version: int, body: bytes, request: Any) -> Sequence[Any]:
        """The parts in which that request is decided, none where it is decided as a whole."""
        if api.split is None:
            return ()
        known = self._decoded
        if known is not None and known[:3] == (api.key, version, body):
            return known.parts
        return _run_all(api.split(request))

    def answer(self, key: int, version: int, body: bytes | None, values: Mapping[str, Any]) -> Body:
        """The answer to that request: encoded now, unless it is the long one or a part (None)."""
        known = self._decoded
        if body is not None and (known is None or known[:3] != (key, version, body)):
            return encode_response(response(key, version, values))
        return Unencoded(key, version, values)

    def count(self, answer: Body, key: int, version: int, values: Mapping[str, Any]) -> None:
        """Count the errors that are told, of a long answer when it is encoded."""
        if not isinstance(answer, Unencoded):
            for code in error_codes.collect_codes(key, version, values):
                self._counts.failed(key, code)

    def encode(self, answer: Unencoded) -> Generator[None, None, bytes]:
        """Steps that encode a long answer."""
        for code in (yield from error_codes.told_in_slices(*answer)):
            self._counts.failed(answer.key, code)
        return (yield from encode_in_slices(*answer))


def _run_all(steps: Generator[None, None, Sequence[Any]]) -> Sequence[Any]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Sequence[Any] = end.value
            return found
