"""Requests to a node over a connection of our own, one after the other, until a moment that is
fixed at the beginning."""

import socket
import struct
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from appliance.observer.shown import asks_for_certificate, send_all, wrapped
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, is_flexible, request_type

CLIENT: Final = b"penstock-probe"
_HEAD: Final = struct.Struct(">hhi")
_MOST: Final = 8 << 20


class NoAnswer(Exception):
    """Raised if no valid response comes in time."""


class WantsCertificate(NoAnswer):
    """Only clients with a certificate are answered there."""


class Dialogue:
    """address: (host, port). until_s: on the monotonic clock. tls: it is spoken to over TLS, of
    which nothing is verified: a node looks at its own. A context manager; everything raises
    NoAnswer, WantsCertificate among it, and MalformedRequest for bytes that are no answer."""

    def __init__(self, address: tuple[str, int], until_s: float, *, tls: bool = False) -> None:
        self._where = f"{address[0]}:{address[1]}"
        self._until_s = until_s
        self._asked = 0
        try:
            self._sock = socket.create_connection(address, self._left_s())
            if tls:
                self._sock = wrapped(self._sock)
        except OSError as why:
            raise self._refused(why, "is not reached") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sock.close()

    @property
    def left_ms(self) -> int:
        """How long is left, at least 1."""
        return max(1, int(self._left_s() * 1000))

    def ask_server(self, key: int, version: int, values: Mapping[str, Any]) -> Any:
        """The answer to a request, decoded."""
        self._asked += 1
        tags = b"\0" if is_flexible(key, version) else b""
        head = _HEAD.pack(key, version, self._asked) + struct.pack(">h", len(CLIENT)) + CLIENT
        request = head + tags + encode_request(build(request_type(key, version), values))
        try:
            self._sock.settimeout(self._left_s())
            send_all(self._sock, struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", self._take(4))
            if not 4 + len(tags) <= size <= _MOST:
                raise NoAnswer(f"{self._where} sent an answer of {size} bytes")
            told = self._take(size)
        except OSError as why:
            raise self._refused(why, f"does not answer (API key {key})") from None
        if struct.unpack_from(">i", told)[0] != self._asked:
            raise NoAnswer(f"{self._where} answered something else")
        return decode_response(key, version, told[4 + len(tags) :])

    def _refused(self, why: OSError, what: str) -> NoAnswer:
        if asks_for_certificate(why):
            return WantsCertificate(f"{self._where} asks for a certificate")
        return NoAnswer(f"{self._where} {what}: {why}")

    def _take(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._sock.settimeout(self._left_s())
            part = self._sock.recv(size - len(parts))
            if not part:
                raise NoAnswer(f"{self._where} hung up")
            parts += part
        return bytes(parts)

    def _left_s(self) -> float:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise NoAnswer(f"{self._where} does not answer in time")
        return left_s
