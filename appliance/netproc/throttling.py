"""Produce and Fetch against client quotas: what an answer costs its client, and how it is told.

Invariant: a pause is in the answer before the server stops reading (KIP-219). A fetch over its
quota is answered empty and not counted. Called by the server for every answer while a quota exists.
"""

import heapq
from collections.abc import Mapping
from typing import Final

from appliance.handlers import k00_produce, k01_fetch
from appliance.handlers.exchange import Exchange, Piece
from appliance.netproc.connection import Connection
from appliance.quotas.limits import FETCH, PRODUCE, Entity
from appliance.quotas.meters import Meters
from appliance.quotas.window import Windows
from appliance.shell.log import WARNING, Log
from appliance.shell.seat import Seat

Quotas = Mapping[Entity, Mapping[str, float]]

_USER: Final = "ANONYMOUS"
_FIRST_FLEXIBLE_PRODUCE: Final = 9
_FETCH_KEY: Final = 1


class Throttling:
    """The quotas as one network process applies them."""

    __slots__ = ("_log", "_meters", "_muted", "active")

    def __init__(self, seat: Seat, log: Log, quotas: Quotas) -> None:
        self._log = log
        self._muted: list[tuple[int, int, Connection]] = []  # until when, ties broken by number
        table = seat.quotas
        self._meters: Meters | None = None
        if table is not None:
            self._meters = Meters(table, seat.index, Windows(table.windows))
        self.active = False  # some client has a quota on what it produces or fetches
        self.configure(quotas)

    def configure(self, quotas: Quotas) -> None:
        """The quotas of the image, whenever one has changed."""
        meters = self._meters
        if meters is not None:
            meters.configure(quotas)
            self.active = meters.limits(PRODUCE) or meters.limits(FETCH)

    def apply(self, x: Exchange, pieces: list[Piece], now_ns: int) -> list[Piece]:
        """The answer to send. Over its quota a client is told so first, then not read for so
        long."""
        pause_ms, pieces = self.charge(x, pieces, now_ns // 1_000_000)
        if pause_ms and not x.connection.closed:
            until = now_ns + pause_ms * 1_000_000
            x.connection.mute(until)
            heapq.heappush(self._muted, (until, x.number, x.connection))
            why = f"{x.handler.name} is throttled for {pause_ms} ms"
            self._log.event_from(WARNING, "quota-exceeded", _client(x)[:100], why=why)
        return pieces

    def unmute(self, now_ns: int) -> None:
        """Go on reading whose pause is over."""
        muted = self._muted
        while muted and muted[0][0] <= now_ns:
            heapq.heappop(muted)[2].resume()

    def wait_ms(self, now_ns: int, longest_ms: int) -> int:
        """How long the loop may wait until the next pause is over."""
        if not self._muted:
            return longest_ms
        return max(0, min(longest_ms, -(-(self._muted[0][0] - now_ns) // 1_000_000)))

    def charge(self, x: Exchange, pieces: list[Piece], now_ms: int) -> tuple[int, list[Piece]]:
        """(pause in ms, the answer to send). pieces: the answer as planned, none for acks=0."""
        meters = self._meters
        assert meters is not None
        key = x.handler.key
        if key == k00_produce.HANDLER.key:
            pause = meters.charge(PRODUCE, _USER, _client(x), x.end - x.position, now_ms)
            if pause and pieces:
                pieces = [_with_throttle_time(pieces, x.version, pause)]
        elif key == _FETCH_KEY:
            size = sum(len(one) if isinstance(one, bytes) else one.length for one in pieces)
            pause = meters.charge_unless_over(FETCH, _USER, _client(x), size, now_ms)
            if pause:
                pieces = [k01_fetch.throttled(x, pause)]
        else:
            return 0, pieces
        return pause, pieces


def _client(x: Exchange) -> str:
    return (x.client_id or b"").decode(errors="replace")


def _with_throttle_time(pieces: list[Piece], version: int, pause_ms: int) -> bytes:
    """Produce's answer ends with it, and from version 9 on with the count of tagged fields."""
    body = b"".join(one for one in pieces if isinstance(one, bytes))
    end = len(body) - (1 if version >= _FIRST_FLEXIBLE_PRODUCE else 0)
    return body[: end - 4] + pause_ms.to_bytes(4, "big") + body[end:]
