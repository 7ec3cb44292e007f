"""One request of any API over a plain connection, for what confluent-kafka does not offer.

It goes to the first server named: an appliance is one server, and brokers of Apache Kafka pass such
requests on to their controller.
"""

import socket
import struct
from typing import Any, Final

from appliance.base.errors import MalformedRequest
from appliance.cli.exits import UNREACHABLE, Failure
from appliance.cli.link import Link, reach

_HEAD: Final = struct.Struct(">hhi")
_CORRELATION: Final = 1
_MOST: Final = 64 << 20
_SMALLEST: Final = 5  # correlation id and the count of tagged fields


def ask(link: Link, key: int, version: int, values: dict[str, Any]) -> Any:
    """The decoded answer to a request of a flexible version. Raises Failure."""
    from appliance.wire.build import build
    from appliance.wire.messages import decode_response, encode_request, request_type

    reach(link.bootstrap)
    server = link.bootstrap.split(",")[0].strip().rpartition("://")[2]
    host, _, port = server.rpartition(":")
    body = encode_request(build(request_type(key, version), values))
    try:
        with socket.create_connection((host.strip("[]"), int(port)), link.timeout_s) as peer:
            answer = _exchange(peer, key, version, body)
        return decode_response(key, version, answer)
    except ConnectionError as gone:
        lost = Failure(
            f"{server} closed the connection: {gone.strerror or gone}",
            "try again; a listener with TLS or SASL cannot be asked for this",
            code=UNREACHABLE,
            name="UNREACHABLE",
        )
        raise link.explained(lost) from None
    except (OSError, ValueError, struct.error, MalformedRequest) as problem:
        raise Failure(
            f"{server} did not answer as a broker does: {problem}",
            "a listener with TLS or SASL cannot be asked for this",
            code=UNREACHABLE,
            name="UNREACHABLE",
        ) from None


def _exchange(peer: socket.socket, key: int, version: int, body: bytes) -> bytes:
    name = b"penstock"
    head = _HEAD.pack(key, version, _CORRELATION) + struct.pack(">h", len(name)) + name + b"\0"
    peer.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
    size = struct.unpack(">i", _take(peer, 4))[0]
    if not _SMALLEST <= size <= _MOST:
        raise ValueError(f"an answer of {size} bytes")
    data = _take(peer, size)
    if struct.unpack_from(">i", data)[0] != _CORRELATION or data[4]:
        raise ValueError("an answer to something else")
    return data[_SMALLEST:]


def _take(peer: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = peer.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionAbortedError("there is no answer")
        parts += part
    return bytes(parts)
