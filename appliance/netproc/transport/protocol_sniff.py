"""Names of protocols by the first bytes of a connection that are not Kafka's.

Read as a frame length, a TLS hello is 369,295,616 and an HTTP GET 1,195,725,856: the two most
common mistakes, which deserve to be named.
"""

import contextlib

from appliance.netproc.transport.transport import Transport

_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_PAGE = b"This is a Kafka listener (Penstock). It speaks the Kafka protocol, not HTTP.\n"
HTTP_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_PAGE), _PAGE)
)


def what(head: bytes) -> str | None:
    """A sentence about the sender of `head` (4 bytes at least); None: perhaps a Kafka frame."""
    if head[0] == 0x16 and head[1] == 0x03:
        return (
            "a TLS client on a plaintext listener: set security.protocol=PLAINTEXT in the client,"
            " or take the port of a listener with SSL"
        )
    if head[:4] in _HTTP:
        return "an HTTP client on a Kafka listener"
    return None


def on_tls(head: bytes) -> str | None:
    """A sentence about the sender of `head`, the first bytes on a listener with TLS; None when they
    may begin a handshake."""
    if head[:4] in _HTTP:
        return "an HTTP client on a Kafka listener with TLS"
    if head[0] != 0x16:
        return "no TLS on a listener with TLS: set security.protocol=SSL in the client"
    return None


def greet(transport: Transport, head: bytes) -> None:
    """Send an HTTP answer to a client that understands one."""
    if head[:4] in _HTTP:
        with contextlib.suppress(OSError):
            transport.send_pieces([HTTP_ANSWER], False)
