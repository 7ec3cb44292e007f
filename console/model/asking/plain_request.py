"""One request of any API over a connection of our own, in the clear or over TLS, for what
confluent-kafka does not offer.

It goes to the first server named that is there: whichever broker of a cluster it is, what only the
controller decides is passed on to it. What only one broker of several can answer names it.
"""

import socket
import struct
import time
from typing import Any, Final

from appliance.authorization.apis import READS
from appliance.base.errors import MalformedRequest
from console.model.asking.failure import UNREACHABLE, Failure, usage
from console.model.asking.link import Link

_HEAD: Final = struct.Struct(">hhi")
_CORRELATION: Final = 1
_API_VERSIONS: Final = 18
_MOST: Final = 64 << 20
_AGAIN: Final = 5
_AGAIN_S: Final = 0.2
_NAME: Final = b"penstock"


def ask_server(
    link: Link, key: int, version: int, values: dict[str, Any], server: str | None = None
) -> Any:
    """The decoded answer to a request, within the link's time limit. server: HOST:PORT of the
    broker that must be asked. What only reads is asked again where the connection ends without an
    answer: the broker's control may be replaced just then. Raises Failure."""
    reads = key in READS or values.get("validate_only") is True
    link.allow(f"API key {key}", reads=reads)
    if not link.is_asked:
        raise usage(
            f"API key {key} cannot be asked for with this sasl.mechanism",
            "PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 can",
        )
    if server is None:
        server = _first(link)
    for _ in range(_AGAIN if reads else 0):
        try:
            return _asked(link, key, version, values, server)
        except Failure as failure:
            if not isinstance(failure.__context__, ConnectionAbortedError):
                raise
            if failure.name != "UNREACHABLE":
                raise
        time.sleep(_AGAIN_S)
    return _asked(link, key, version, values, server)


def _asked(link: Link, key: int, version: int, values: dict[str, Any], server: str) -> Any:
    """One attempt. Raises Failure."""
    from appliance.wire.build import build
    from appliance.wire.messages import decode_response, encode_request, request_type
    from penstock.door import NotUsable
    from penstock.reach import address_of

    body = encode_request(build(request_type(key, version), values))
    try:
        with link.door.open_connection(address_of(server), link.timeout_s) as peer:
            answer = _exchange(peer, key, version, body)
        return decode_response(key, version, answer)
    except NotUsable as wrong:
        raise usage(str(wrong), "see the flags -X and --command-config") from None
    except (OSError, ValueError, struct.error, MalformedRequest) as problem:
        raise _lost(link, server, problem) from None


def _first(link: Link) -> str:
    """The first of the servers that is there. Raises Failure when none is."""
    from penstock.reach import unreachable

    link.reach()
    servers = [one.strip() for one in link.living.split(",")]
    return next((one for one in servers[:-1] if not unreachable(one, link.limit_s)), servers[-1])


def _exchange(peer: socket.socket, key: int, version: int, body: bytes) -> bytes:
    from appliance.wire.messages import is_flexible
    from penstock.frames import exchange

    tags = b"\0" if is_flexible(key, version) else b""
    head = _HEAD.pack(key, version, _CORRELATION) + struct.pack(">h", len(_NAME)) + _NAME + tags
    told = b"" if key == _API_VERSIONS else tags  # its answer has the oldest head in any version
    least = 4 + len(told)
    data = exchange(peer, head + body, least=least, most=_MOST)
    if struct.unpack_from(">i", data)[0] != _CORRELATION or data[4:least] != told:
        raise ValueError("a response to another request")
    return data[least:]


def _lost(link: Link, server: str, problem: Exception) -> Failure:
    if (spoken := link.unspoken(server, problem)) is not None:
        return spoken
    if isinstance(problem, ConnectionError):
        text, hint = f"closed the connection: {problem.strerror or problem}", "try again"
    else:
        text, hint = f"sent an invalid response: {problem}", ""
    lost = Failure(f"{server} {text}", hint, where=server, code=UNREACHABLE, name="UNREACHABLE")
    return link.explained(lost) if isinstance(problem, ConnectionError) else lost
