"""Messages over a connection, a request and its answer for example: four bytes of length, then as
many bytes."""

import socket
import struct
import time

_CHUNK = 1 << 20


def exchange(
    peer: socket.socket, request: bytes, *, least: int, most: int, until: float | None = None
) -> bytes:
    """The answer to `request`, both without their lengths. until: on the monotonic clock; without
    it the socket's own patience holds. Raises OSError, and ValueError for an answer that is shorter
    than `least` or longer than `most` bytes."""
    try:
        send_message(peer, request)
    except OSError:
        peer.recv(1)  # raises what was said before they hung up: TLS 1.3 wants a certificate so
        raise
    return receive_message(peer, least=least, most=most, until=until)


def send_message(peer: socket.socket, message: bytes) -> None:
    """Raises OSError."""
    peer.sendall(struct.pack(">i", len(message)) + message)


def receive_message(
    peer: socket.socket, *, least: int, most: int, until: float | None = None
) -> bytes:
    """The next message, without its length; the rest as `exchange`."""
    (size,) = struct.unpack(">i", _take(peer, 4, until))
    if not least <= size <= most:
        raise ValueError(f"an answer of {size} bytes")
    return _take(peer, size, until)


def _take(peer: socket.socket, size: int, until: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if until is not None:
            peer.settimeout(max(0.001, until - time.monotonic()))
        part = peer.recv(min(size - len(parts), _CHUNK))
        if not part:
            raise ConnectionAbortedError("the connection was closed without an answer")
        parts += part
    return bytes(parts)
