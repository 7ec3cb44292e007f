"""Answers against client quotas: what an answer costs its client, and how it is told.

Invariant: a pause is in the answer before the server stops reading (KIP-219). A fetch over its
quota is answered empty and not counted. Who has used half of what it may produce is served one
request at a time, so that only one is read before a pause, and not all that wait. Called by the
server for every answer while a quota exists.
"""

import heapq
from collections.abc import Mapping
from itertools import count
from typing import Final

from appliance.base.clock import Clock
from appliance.handlers import k00_produce, k01_fetch
from appliance.handlers.exchange import Exchange, Piece
from appliance.netproc import throttle_field
from appliance.netproc.connection import Connection
from appliance.netproc.stopwatch import Stopwatch
from appliance.quotas.limits import FETCH, MUTATION, PRODUCE, REQUEST, Entity, entity_text
from appliance.quotas.meters import Meters
from appliance.quotas.mutations import STRICT_SINCE
from appliance.quotas.window import Windows
from appliance.shell.log import WARNING, Log
from appliance.shell.seat import Seat
from appliance.wire.request_head import FIRST_FLEXIBLE

Quotas = Mapping[Entity, Mapping[str, float]]

_USER: Final = "ANONYMOUS"
_PRODUCE_KEY: Final = k00_produce.HANDLER.key
_FETCH_KEY: Final = 1
_WARN_EVERY_NS: Final = 60_000_000_000
_MOST_WARNED: Final = 1024
_HEADER_BYTES: Final = 10  # without the client id and tagged fields


class Throttling:
    """The quotas as one network process applies them.

    active: some client has a quota on what it sends, reads, asks or changes. muted: whose pause
    ends when, a heap; read it only."""

    __slots__ = ("_log", "_ties", "_warned", "active", "meters", "muted", "watch")

    def __init__(self, seat: Seat, log: Log, clock: Clock) -> None:
        self._log = log
        self.muted: list[tuple[int, int, Connection]] = []  # until when, ties broken by order
        self._ties = count()
        self._warned: dict[tuple[str, Entity], int] = {}
        size_ms = seat.config.int("quota.window.size.seconds") * 1000
        self.meters = Meters(seat.quotas, seat.index, Windows(seat.quotas.windows, size_ms))
        self.watch = Stopwatch(clock)
        self.active = False

    def configure(self, quotas: Quotas, arrivals: float | None) -> None:
        """The quotas of the image, whenever one has changed; arrivals: connections per second."""
        meters = self.meters
        meters.configure(quotas, arrivals)
        self.active = any(map(meters.limits, (PRODUCE, FETCH, REQUEST, MUTATION)))
        self.watch.end()
        self.watch.running = meters.limits(REQUEST)

    def apply(self, x: Exchange, pieces: list[Piece], now_ns: int) -> list[Piece]:
        """The answer to send, none for acks=0. Over its quota a client is told so first, then not
        read for so long."""
        now_ms = now_ns // 1_000_000
        client = _client(x)
        asked_ms = self._charge_time(x, client, now_ms) if self.watch.running and pieces else 0
        key = x.handler.key
        kind = REQUEST
        pause_ms = 0
        if key == _PRODUCE_KEY:
            kind = PRODUCE
            pause_ms = self.meters.charge(PRODUCE, _USER, client, _request_size(x), now_ms)
            x.connection.one_by_one = self.meters.near(PRODUCE, _USER, client)
        elif key == _FETCH_KEY:
            kind = FETCH
            size = sum(len(one) if isinstance(one, bytes) else one.length for one in pieces)
            held = asked_ms > 0
            pause_ms = self.meters.charge_unless_over(FETCH, _USER, client, size, now_ms, held)
        elif key in STRICT_SINCE and self.meters.limits(MUTATION):
            kind = MUTATION
            pause_ms = throttle_field.told(key, x.version, _joined(pieces))
        if asked_ms or pause_ms:
            kind = kind if pause_ms > asked_ms else REQUEST
            pause_ms = max(pause_ms, asked_ms)
            pieces = _telling(x, pieces, pause_ms)
            self._mute(x, kind, client, pause_ms, now_ns)
        return pieces

    def fetch_room(self, x: Exchange) -> int | None:
        """The most bytes that one answer to this client may have, None for no limit."""
        return self.meters.room(FETCH, _USER, _client(x)) if self.active else None

    def unmute(self, now_ns: int) -> None:
        """Go on reading whose pause is over."""
        muted = self.muted
        while muted and muted[0][0] <= now_ns:
            heapq.heappop(muted)[2].resume()

    def wait_ms(self, now_ns: int, longest_ms: int) -> int:
        """How long the loop may wait until the next pause is over."""
        if not self.muted:
            return longest_ms
        return max(0, min(longest_ms, -(-(self.muted[0][0] - now_ns) // 1_000_000)))

    def _charge_time(self, x: Exchange, client: str, now_ms: int) -> int:
        return self.meters.charge(
            REQUEST, _USER, client, self.watch.bill(x.connection.account), now_ms
        )

    def _mute(self, x: Exchange, kind: str, client: str, pause_ms: int, now_ns: int) -> None:
        if x.connection.closed:
            return
        until = now_ns + pause_ms * 1_000_000
        x.connection.mute(until)
        heapq.heappush(self.muted, (until, next(self._ties), x.connection))
        found = self.meters.told(kind, _USER, client)
        if found is None:
            return
        limit, entity = found
        if self._warned.get((kind, entity), now_ns) > now_ns:
            return
        if len(self._warned) >= _MOST_WARNED:
            self._warned.clear()
        self._warned[kind, entity] = now_ns + _WARN_EVERY_NS
        self._log.event(
            WARNING,
            "quota-exceeded",
            entity=entity_text(entity)[:200],
            quota=kind,
            limit=f"{limit:.12g}",
            client=client[:100],
            request=x.handler.name,
            throttle_ms=pause_ms,
        )


def _client(x: Exchange) -> str:
    return (x.client_id or b"").decode(errors="replace")


def _request_size(x: Exchange) -> int:
    """With its header, as Kafka counts."""
    tags = x.version >= FIRST_FLEXIBLE[_PRODUCE_KEY]
    return x.end - x.position + _HEADER_BYTES + len(x.client_id or b"") + tags


def _joined(pieces: list[Piece]) -> bytes:
    return b"".join(one for one in pieces if isinstance(one, bytes))


def _telling(x: Exchange, pieces: list[Piece], pause_ms: int) -> list[Piece]:
    """The answer with the pause in it; a fetch's is an empty one."""
    if not pieces:
        return pieces
    if x.handler.key == _FETCH_KEY:
        return [k01_fetch.throttled(x, pause_ms)]
    return [throttle_field.tell(x.handler.key, x.version, _joined(pieces), pause_ms)]
