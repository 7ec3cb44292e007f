"""SASL towards another node: SaslHandshake 1 and SaslAuthenticate 1 (API keys 17 and 36, KIP-43,
KIP-152, KIP-368) over a carrier of bytes, before any other request.
"""

import secrets
import select
from collections.abc import Callable, Sequence
from struct import Struct, error
from typing import Any, Final

from appliance.authentication.client_login import ClientLogin, NodeCredentials
from appliance.authentication.refused import LoginRefused
from appliance.base.errors import MalformedRequest
from appliance.peers.carrier import BLOCKED, ENDED, Carrier
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, request_type

_HANDSHAKE: Final = 17
_AUTHENTICATE: Final = 36
_VERSION: Final = 1  # of both
_HEAD: Final = Struct(">ihhih")  # length, API key, version, correlation id, length of the client id
_ANSWER: Final = Struct(">ii")  # length, correlation id
_LARGEST: Final = 1 << 16
"""Bytes of an answer: a proof, or a list of mechanisms."""
_UNSUPPORTED_MECHANISM: Final = 33

Failed = Callable[[str], None]
"""Hears why a login failed, without a password."""


class LoginCarrier(Carrier):
    """Carries bytes over another carrier once this node has logged in. `do_handshake` raises
    ConnectionAbortedError with a sentence for an operator if the other node refuses the login."""

    def __init__(
        self, carrier: Carrier, credentials: NodeCredentials, client_id: str, failed: Failed
    ) -> None:
        """carrier: with its handshake before it."""
        super().__init__(carrier.sock)
        self._carrier = carrier
        self._credentials = credentials
        self._login = ClientLogin(credentials, secrets.token_urlsafe(24))
        self._client_id = client_id.encode()
        self._failed = failed
        self._agreed = False  # the handshake of the carrier is over
        self._asked = _HANDSHAKE
        self._unsent = b""
        self._heard = bytearray()
        self._done = False

    def do_handshake(self) -> bool:
        if not self._agreed:
            if not self._carrier.do_handshake():
                self.wants = self._carrier.wants
                return False
            self._agreed = True
            self._ask(_HANDSHAKE, {"mechanism": self._credentials.mechanism})
        try:
            return self._converse()
        except (LoginRefused, MalformedRequest, error) as cause:
            why = str(cause)
        self._failed(why)
        raise ConnectionAbortedError(f"the login of this node is refused: {why}")

    def receive_into(self, into: memoryview) -> int:
        count = self._carrier.receive_into(into)
        self.buffered = self._carrier.buffered
        return count

    def send_pieces(self, pieces: Sequence[memoryview]) -> int:
        return self._carrier.send_pieces(pieces)

    def close(self) -> None:
        self._carrier.close()

    def _converse(self) -> bool:
        """Sends and hears as far as the socket goes; True when the other node has let this one in.
        Raises OSError, LoginRefused, MalformedRequest."""
        while not self._done:
            if self._unsent:
                sent = self._carrier.send_pieces([memoryview(self._unsent)])
                if sent == BLOCKED:
                    self.wants = select.EPOLLOUT
                    return False
                self._unsent = self._unsent[sent:]
                continue
            answer = self._take_answer()
            if answer is not None:
                self._take(answer)
            elif not self._receive():
                self.wants = select.EPOLLIN
                return False
        self.wants = 0
        return True

    def _receive(self) -> bool:
        """True if something came."""
        room = memoryview(bytearray(4096))
        count = self._carrier.receive_into(room)
        if count == BLOCKED:
            return False
        if count == ENDED:
            raise LoginRefused("it closed the connection; a listener without SASL does so")
        self._heard += room[:count]
        return True

    def _take_answer(self) -> bytes | None:
        """The body of an answer that is whole."""
        if len(self._heard) < _ANSWER.size:
            return None
        length, _ = _ANSWER.unpack_from(self._heard)
        if not _ANSWER.size - 4 <= length <= _LARGEST:
            raise MalformedRequest(f"an answer of {length} bytes")
        if len(self._heard) < 4 + length:
            return None
        body = bytes(self._heard[_ANSWER.size : 4 + length])
        del self._heard[: 4 + length]
        return body

    def _take(self, body: bytes) -> None:
        answer = decode_response(self._asked, _VERSION, body)
        if self._asked == _HANDSHAKE:
            _check_offer(answer, self._credentials.mechanism)
            self._authenticate(self._login.first_message())
            return
        if answer.error_code:
            why = answer.error_message or f"error {int(answer.error_code)}"
            raise LoginRefused(f"user {self._credentials.user}: {why}")
        message = self._login.answer_message(answer.auth_bytes)
        if message is None:
            self._done = True
            self.lifetime_ms = round(answer.session_lifetime.total_seconds() * 1000)
        else:
            self._authenticate(message)

    def _authenticate(self, message: bytes) -> None:
        self._ask(_AUTHENTICATE, {"auth_bytes": message})

    def _ask(self, key: int, values: dict[str, Any]) -> None:
        body = encode_request(build(request_type(key, _VERSION), values))
        name = self._client_id
        length = _HEAD.size - 4 + len(name) + len(body)
        self._asked = key
        self._unsent = _HEAD.pack(length, key, _VERSION, 0, len(name)) + name + body


def _check_offer(answer: Any, mechanism: str) -> None:
    if not answer.error_code:
        return
    if answer.error_code == _UNSUPPORTED_MECHANISM:
        offered = ", ".join(answer.mechanisms) or "none"
        raise LoginRefused(f"mechanism {mechanism} is not offered there: {offered}")
    raise LoginRefused("the listener has no SASL")
