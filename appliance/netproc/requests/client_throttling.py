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
from appliance.handlers import fetch_answer, k00_produce
from appliance.handlers.exchange import Exchange, Piece
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.request_time import Stopwatch
from appliance.netproc.requests import throttle_field
from appliance.quotas.limits import (
    FETCH,
    KINDS,
    MUTATION,
    PRODUCE,
    REQUEST,
    Entity,
    entity_text,
)
from appliance.quotas.meters import Meters
from appliance.quotas.mutations import STRICT_SINCE
from appliance.quotas.window import Windows
from appliance.shell.log import WARNING, Log
from appliance.shell.seat import Seat

Quotas = Mapping[Entity, Mapping[str, float]]

_PRODUCE_KEY: Final = k00_produce.HANDLER.key
_FETCH_KEY: Final = 1
_WARN_EVERY_NS: Final = 60_000_000_000
_MOST_WARNED: Final = 1024
_PREFIX: Final = 4  # bytes that say how long a frame is
_MS_NS: Final = 1_000_000
_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}


class ClientThrottling:
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
        windows = Windows(seat.quotas.windows, size_ms)
        self.meters = Meters(seat.quotas, seat.index, windows, reach=log.reach)
        self.watch = Stopwatch(clock)
        self.active = False

    def configure(self, quotas: Quotas, arrivals: float | None) -> None:
        """The quotas of the image, whenever one has changed; arrivals: connections per second."""
        meters = self.meters
        meters.configure(quotas, arrivals)
        self.active = any(map(meters.limits, (PRODUCE, FETCH, REQUEST, MUTATION)))
        self.watch.end_account()
        self.watch.running = meters.limits(REQUEST)

    def apply(self, x: Exchange, pieces: list[Piece], now_ns: int) -> list[Piece]:
        """The answer to send, none for acks=0. Over its quota a client is told so first, then not
        read for so long."""
        now_ms = now_ns // 1_000_000
        caller = x.rights.caller
        user, client = caller.principal.name, caller.client_id
        asked_ms = self._charge_time(x, now_ms) if self.watch.running and pieces else 0
        key = x.handler.key
        kind = REQUEST
        pause_ms = 0
        if key == _PRODUCE_KEY:
            kind = PRODUCE
            pause_ms = self.meters.charge(PRODUCE, user, client, x.received - _PREFIX, now_ms)
            x.connection.one_by_one = self.meters.near(PRODUCE, user, client)
        elif key == _FETCH_KEY:
            kind = FETCH
            size = sum(len(one) if isinstance(one, bytes) else one.length for one in pieces)
            held = asked_ms > 0
            pause_ms = self.meters.charge_unless_over(FETCH, user, client, size, now_ms, held)
        elif key in STRICT_SINCE and self.meters.limits(MUTATION):
            kind = MUTATION
            pause_ms = throttle_field.read_pause(key, x.version, _joined(pieces))
        if asked_ms or pause_ms:
            kind = kind if pause_ms > asked_ms else REQUEST
            pause_ms = max(pause_ms, asked_ms)
            pieces = _telling(x, pieces, pause_ms)
            self._mute(x, kind, pause_ms, now_ns)
        return pieces

    def fetch_room(self, x: Exchange) -> int | None:
        """The most bytes that one answer to this client may have, None for no limit."""
        if not self.active:
            return None
        caller = x.rights.caller
        return self.meters.room(FETCH, caller.principal.name, caller.client_id)

    def mute_again(self, connection: Connection, until_ns: int) -> None:
        """Its pause has begun in another process."""
        connection.mute(until_ns)
        heapq.heappush(self.muted, (until_ns, next(self._ties), connection))

    def unmute(self, now_ns: int) -> None:
        """Go on reading whose pause is over."""
        muted = self.muted
        while muted and muted[0][0] <= now_ns:
            connection = heapq.heappop(muted)[2]
            try:
                connection.resume()
            except Exception as bug:
                connection.blame("reading on after a pause", bug)

    def wait_ms(self, now_ns: int, longest_ms: int) -> int:
        """How long the loop may wait until the next pause is over."""
        if not self.muted:
            return longest_ms
        return max(0, min(longest_ms, -(-(self.muted[0][0] - now_ns) // 1_000_000)))

    def _charge_time(self, x: Exchange, now_ms: int) -> int:
        caller, used_ns = x.rights.caller, self.watch.bill(x.connection.account)
        return self.meters.charge(REQUEST, caller.principal.name, caller.client_id, used_ns, now_ms)

    def _mute(self, x: Exchange, kind: str, pause_ms: int, now_ns: int) -> None:
        if x.connection.closed:
            return
        until = now_ns + pause_ms * _MS_NS
        x.connection.mute(until)
        x.connection.tell_pause(_NUMBERS[kind], until // _MS_NS, pause_ms)
        heapq.heappush(self.muted, (until, next(self._ties), x.connection))
        caller = x.rights.caller
        found = self.meters.find_limit(kind, caller.principal.name, caller.client_id)
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
            client=caller.client_id[:100],
            peer=caller.address,
            request=x.handler.name,
            throttle_ms=pause_ms,
        )


def _joined(pieces: list[Piece]) -> bytes:
    return b"".join(one for one in pieces if isinstance(one, bytes))


def _telling(x: Exchange, pieces: list[Piece], pause_ms: int) -> list[Piece]:
    """The answer with the pause in it; a fetch's is an empty one."""
    if not pieces:
        return pieces
    if x.handler.key == _FETCH_KEY:
        return [fetch_answer.throttled(x, pause_ms)]
    if x.handler.key == _PRODUCE_KEY and isinstance(pieces[0], bytes):
        return [
            throttle_field.write_pause(_PRODUCE_KEY, x.version, pieces[0], pause_ms),
            *pieces[1:],
        ]
    return [throttle_field.write_pause(x.handler.key, x.version, _joined(pieces), pause_ms)]
