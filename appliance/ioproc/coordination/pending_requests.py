"""Requests for coordinators on their way in: put together from pieces, decoded, remembered until
they are answered.

Invariant: what a dead netproc asked is forgotten, so its successor is answered nothing that it did
not ask. Called by `host`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from appliance.authorization.rights import Callers
from appliance.base.errors import MalformedRequest
from appliance.coordinators.runtime.call import UNVERIFIED, Call
from appliance.coordinators.runtime.kind import LONG
from appliance.ring.messages import GUARD, NO_GUARD, Message
from appliance.ring.slots import unpack_coordinate
from appliance.wire.messages import decode_request

_PEER_BITS = 64
_ROWS: Final = {11: "protocols", 14: "assignments"}
"""API key of requests that wait for others → their long field."""


class PendingRequest(NamedTuple):
    """A request that is not answered yet. token: of the netproc; call.token is ours. guard: what
    it was given for its transaction. body: of a long request, None
    of a short one, which is decoded at once."""

    peer: int
    token: int
    call: Call
    request: Any
    guard: int
    body: bytes | None = None


class PendingRequests:
    """asked: by our own token. callers: what those who ask may do. takes_turns: of the kind."""

    def __init__(self, callers: Callers, takes_turns: Callable[[int], bool]) -> None:
        self._callers = callers
        self._takes_turns = takes_turns
        self._known = callers.known
        self.asked: dict[int, PendingRequest] = {}
        self._parts: dict[int, tuple[int, list[bytes]]] = {}  # → length of the caller, pieces
        self._begun: dict[int, int] = {}  # by netproc: bytes of its pieces
        self._last: tuple[int, bytes, Any] = (-1, b"", None)  # (key and version, body, request)

    def take_piece(self, peer: int, message: Message, most: int) -> PendingRequest | None:
        """The request, when this was its last piece; a long one is not decoded yet. most: bytes of
        requests that a netproc can have begun, those of its arena. Raises MalformedRequest."""
        key = peer << _PEER_BITS | message.token
        begun = self._parts.pop(key, None)
        more, api, named = unpack_coordinate(message)
        if begun is None and not more:
            data = message.payload
        else:
            named, pieces = begun or (named, [])
            pieces.append(message.payload)
            held = self._begun.get(peer, 0) + len(message.payload)
            if more and held <= most:
                self._begun[peer] = held
                self._parts[key] = named, pieces
                return None
            data = b"".join(pieces)
            self._begun[peer] = held - len(data)
            if more:
                raise MalformedRequest(f"{held} bytes of requests without an end")
        body_at = named + GUARD.size if message.flags else named
        if not 0 <= named <= body_at <= len(data):
            raise MalformedRequest(f"{len(data)} bytes with a caller of {named}")
        caller = data[:named]
        rights = self._known.get(caller) or self._callers.of(caller)
        api_key, version = api >> 16, api & 0xFFFF
        guard, standing = NO_GUARD, UNVERIFIED
        if message.flags:
            (guard,) = GUARD.unpack_from(data, named)
            standing = message.flags - 1 or UNVERIFIED
        call = Call(api_key, version, key, rights, standing)
        if len(data) >= LONG and self._takes_turns(api_key):
            asked = PendingRequest(peer, message.token, call, None, guard, data[body_at:])
        else:
            request = self._decode(api, data[body_at:])
            asked = PendingRequest(peer, message.token, call, request, guard)
        self.asked[key] = asked
        return asked

    def forget_rows(self, token: int) -> None:
        """Forget the rows of a JoinGroup or SyncGroup that is decided and waits: its group has what
        counts, and a refusal needs none."""
        asked = self.asked.get(token)
        rows = None if asked is None else _ROWS.get(asked.call.api_key)
        if asked is not None and rows is not None:
            self.asked[token] = asked._replace(request=replace(asked.request, **{rows: ()}))

    def _decode(self, kind: int, body: bytes) -> Any:
        """Several partitions are asked the same thing one after the other: it is decoded once."""
        last_kind, last_body, request = self._last
        if kind != last_kind or body != last_body:
            request = decode_request(kind >> 16, kind & 0xFFFF, body)
            self._last = kind, body, request
        return request

    def drop(self, peer: int) -> None:
        """The netproc died."""
        for key in [key for key in self.asked if key >> _PEER_BITS == peer]:
            del self.asked[key]
        for key in [key for key in self._parts if key >> _PEER_BITS == peer]:
            del self._parts[key]
        self._begun.pop(peer, None)
        self._last = (-1, b"", None)
