"""One connection to another node, as bytes: requests out, answers in.

    ask ─▶ waiting ─ versions known, room in flight ─▶ in flight ─▶ done(answer)
              └──────────── time is up, connection lost ───┴──────▶ done(PeerError)

It has no socket and no clock. A connection begins with ApiVersions (v3); what waits is encoded when
it is sent, in the highest version that both sides have. Answers come in the order of the requests,
so a request whose time is up ends the connection. Each `done` is called once, whatever happens; it
may `ask` again.

Invariants: no more than `limit` requests are in flight; the correlation id of an answer is that of
the oldest of them; the receive buffer holds at most one answer that is not whole.
"""

from collections import deque
from collections.abc import Callable, Mapping
from struct import Struct, error
from typing import Any, Final, NamedTuple

from appliance.base.errors import (
    CORRUPT_MESSAGE,
    NETWORK_EXCEPTION,
    NONE,
    REQUEST_TIMED_OUT,
    UNSUPPORTED_VERSION,
    MalformedRequest,
    PeerError,
    Refused,
)
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, request_type
from appliance.wire.request_head import API_VERSIONS, is_flexible
from appliance.wire.varint import skip_tagged_fields

NEVER: Final = 1 << 62
IN_FLIGHT: Final = 5
LARGEST: Final = 1 << 28
"""Bytes of an answer. What we ask for is bounded far below; more than that is no answer."""

_FIRST_BUFFER: Final = 1 << 12
"""Most links only ever hear of heartbeats and empty fetches."""
_NEXT_BUFFER: Final = 1 << 16
_VERSIONS: Final = 3  # of ApiVersions: every node that replicates by topic ids has it
_HEAD: Final = Struct(">ihhih")  # length, api key, version, correlation id, length of the client id
_LENGTH: Final = Struct(">i")

Body = Mapping[str, Any] | Callable[[int], bytes]
"""A request: plain values by kio's names (`wire.build`), or what encodes it in a version."""

Done = Callable[[Any], None]
"""Gets kio's message, an Undecoded, or a PeerError: NETWORK_EXCEPTION when the connection was
closed or not made (a Refused when the other host refused it), REQUEST_TIMED_OUT,
UNSUPPORTED_VERSION, CORRUPT_MESSAGE."""


class Undecoded(NamedTuple):
    """An answer as it came. body: what follows the header, in the receive buffer; it stays as it
    is until the next turn of the loop has ended, no longer."""

    version: int
    body: memoryview


class _Ask(NamedTuple):
    api_key: int
    lowest: int
    highest: int
    body: Body
    done: Done
    until_ms: int
    raw: bool


class _Sent(NamedTuple):
    ask: _Ask
    version: int
    correlation_id: int


class Conversation:
    """waiting: how many requests are not sent yet. in_flight: how many are not answered.
    versions: what the other side serves, by API key; empty until it said so. heard: a request of
    this connection was answered, ApiVersions aside."""

    def __init__(self, client_id: str, software: str, limit: int = IN_FLIGHT) -> None:
        assert limit > 0
        self._client_id = client_id.encode()
        self._software = software
        self._limit = limit
        self._waiting: deque[_Ask] = deque()
        self._flight: deque[_Sent] = deque()
        self._correlation_id = 0
        self.versions: dict[int, range] = {}
        self.heard = False
        self._buffer = memoryview(bytearray(_FIRST_BUFFER))
        self._begin = self._end = 0  # of what came and is not taken yet
        self._out: list[bytes] = []
        self._opened = 0  # connections so far; an answer counts for the one it came by

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        return len(self._flight)

    @property
    def quiet(self) -> bool:
        """True if no request is queued or in flight."""
        return not (self._waiting or self._flight or self._out)

    @property
    def speaks(self) -> bool:
        """True if `outgoing` may have something."""
        return bool(self._waiting or self._out)

    def ask_peer(
        self,
        api_key: int,
        versions: range,
        body: Body,
        done: Done,
        until_ms: int,
        *,
        raw: bool = False,
    ) -> None:
        """versions: those that whoever asks can write and read. until_ms: when `done` hears of
        REQUEST_TIMED_OUT. raw: the answer stays undecoded."""
        assert versions
        highest = versions[-1]
        self._waiting.append(_Ask(api_key, versions[0], highest, body, done, until_ms, raw))

    # The connection -------------------------------------------------------------------------------

    def opened(self, until_ms: int) -> None:
        """A new connection is there; until_ms: for the answer to ApiVersions."""
        assert not self._flight and not self.versions
        self._opened += 1
        self.heard = False
        self._begin = self._end = 0
        values = {
            "client_software_name": self._software,
            "client_software_version": "1",
        }
        only = _Ask(API_VERSIONS, _VERSIONS, _VERSIONS, values, self._learn, until_ms, False)
        self._send(only, _VERSIONS)

    def closed(self, why: str, *, refused: bool = False) -> None:
        """There is no connection any more, or none could be made: everyone hears so. refused: the
        other host says that nobody takes any."""
        error = (Refused if refused else PeerError)(NETWORK_EXCEPTION, why)
        lost = [sent.ask for sent in self._flight] + list(self._waiting)
        self._flight.clear()
        self._waiting.clear()
        self._out.clear()
        self.versions = {}
        self._opened += 1
        for ask in lost:
            if ask.api_key != API_VERSIONS:
                ask.done(error)

    def reopen(self) -> None:
        """The connection is given up for another one while nothing is in flight; what waits is sent
        by that one."""
        assert not (self._flight or self._out)
        self.versions = {}
        self._opened += 1

    def expire(self, now_ms: int) -> bool:
        """Tell those whose time is up; whether the connection is to be closed for it."""
        late = [ask for ask in self._waiting if ask.until_ms <= now_ms]
        if late:
            self._waiting = deque(ask for ask in self._waiting if ask.until_ms > now_ms)
        overdue = [sent for sent in self._flight if sent.ask.until_ms <= now_ms]
        if overdue:
            self._flight = deque(sent for sent in self._flight if sent.ask.until_ms > now_ms)
        for ask in [sent.ask for sent in overdue] + late:
            if ask.api_key != API_VERSIONS:
                ask.done(PeerError(REQUEST_TIMED_OUT, "no answer in time"))
        return bool(overdue)

    @property
    def deadline_ms(self) -> int:
        """When `expire` has something to do."""
        waiting = [ask.until_ms for ask in self._waiting]
        return min(waiting + [sent.ask.until_ms for sent in self._flight], default=NEVER)

    # Out ------------------------------------------------------------------------------------------

    def outgoing(self) -> list[bytes]:
        """Returns the bytes to send now, in order."""
        while self._waiting and self.versions and len(self._flight) < self._limit:
            ask = self._waiting.popleft()
            served = self.versions.get(ask.api_key, range(0))
            version = min(ask.highest, served[-1]) if served else -1
            if version < ask.lowest or version not in served:
                ask.done(PeerError(UNSUPPORTED_VERSION, f"API {ask.api_key} is not served"))
            else:
                self._send(ask, version)
        out, self._out = self._out, []
        return out

    def _send(self, ask: _Ask, version: int) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        if isinstance(ask.body, Mapping):
            message = build(request_type(ask.api_key, version), ask.body)
            body = encode_request(message)
        else:
            body = ask.body(version)
        name, tags = self._client_id, b"\0" if is_flexible(ask.api_key, version) else b""
        length = _HEAD.size - 4 + len(name) + len(tags) + len(body)
        number = self._correlation_id
        head = _HEAD.pack(length, ask.api_key, version, number, len(name))
        self._out.append(b"".join((head, name, tags, body)))
        self._flight.append(_Sent(ask, version, number))

    # In -------------------------------------------------------------------------------------------

    def room(self) -> memoryview:
        """Where the next bytes go: never empty. What was taken before is overwritten."""
        rest = self._end - self._begin
        need = _LENGTH.size
        if rest >= _LENGTH.size:
            need += self._length()
        if self._begin + need > len(self._buffer) or self._end == len(self._buffer):
            buffer = self._buffer
            if need > len(buffer):  # a new one: somebody may look at the old one still
                buffer = memoryview(bytearray(max(need, _NEXT_BUFFER)))
            buffer[:rest] = bytes(self._buffer[self._begin : self._end])
            self._buffer, self._begin, self._end = buffer, 0, rest
        elif rest == 0:
            self._begin = self._end = 0
        assert self._end < len(self._buffer)
        return self._buffer[self._end :]

    def received(self, count: int) -> None:
        """So many bytes were put into `room`: answers that are whole go to who asked. Raises
        MalformedRequest when they are none; the connection is to be closed then."""
        self._end += count
        connection = self._opened
        while connection == self._opened and self._end - self._begin >= _LENGTH.size:
            after = self._begin + _LENGTH.size + self._length()
            if after > self._end:
                return
            body = self._buffer[self._begin + _LENGTH.size : after]
            self._begin = after
            self._answered(body)

    def _length(self) -> int:
        (length,) = _LENGTH.unpack_from(self._buffer, self._begin)
        if not _LENGTH.size <= length <= LARGEST:
            raise MalformedRequest(f"an answer of {length} bytes")
        return int(length)

    def _answered(self, frame: memoryview) -> None:
        (number,) = _LENGTH.unpack_from(frame)
        if not self._flight or self._flight[0].correlation_id != number:
            raise MalformedRequest(f"an answer to request {number}, which was not asked next")
        ask, version, _ = self._flight.popleft()
        at = _LENGTH.size
        try:
            if ask.api_key != API_VERSIONS and is_flexible(ask.api_key, version):
                at = skip_tagged_fields(frame, at, len(frame))
            body = frame[at:]
            answer: Any = Undecoded(version, body)
            if not ask.raw:
                answer = decode_response(ask.api_key, version, body)
        except (MalformedRequest, error, IndexError) as cause:
            if ask.api_key != API_VERSIONS:
                ask.done(PeerError(CORRUPT_MESSAGE, str(cause)))
            raise MalformedRequest(str(cause)) from cause
        self.heard = self.heard or ask.api_key != API_VERSIONS
        ask.done(answer)

    def _learn(self, answer: Any) -> None:
        if answer.error_code != NONE:
            raise MalformedRequest(f"ApiVersions v{_VERSIONS} is answered {answer.error_code!r}")
        self.versions = {
            one.api_key: range(one.min_version, one.max_version + 1) for one in answer.api_keys
        }
