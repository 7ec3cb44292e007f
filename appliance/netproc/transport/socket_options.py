"""Options of an accepted socket: no delay, how much may be under way in it, and how soon a peer is
missed that went without a word.

To a client of the same host the send buffer is kept small: with the megabytes that the kernel would
grow it to, all of a large answer is queued before the client reads the first byte, the queue falls
out of the processor's cache, and a hot fetch of 8 MB runs at 220/s instead of 570/s. Over a real
network the kernel tunes it, because there a small buffer would bound the rate by the round trip.
Called by the listener for each connection.
"""

import socket
from typing import Final

from appliance.base.addresses import plain_address
from appliance.config.broker import BrokerConfig

SAME_HOST_SEND_BYTES: Final = 192 * 1024
"""SO_SNDBUF towards a client of the same host. 128 to 256 KB serve alike."""

_KEEPALIVE: Final = (
    (socket.TCP_KEEPIDLE, 60),
    (socket.TCP_KEEPINTVL, 10),
    (socket.TCP_KEEPCNT, 6),
)
"""A silent peer is asked after a minute and given up after two (RFC 9293, 3.8.4). Apache Kafka sets
the option, too, and leaves the first question to Linux: after two hours."""


def tune(sock: socket.socket, peer: str, config: BrokerConfig) -> None:
    """Make it non-blocking, and set what `socket.*.buffer.bytes` say. peer: its address."""
    sock.setblocking(False)
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    send = config.int("socket.send.buffer.bytes")
    if send < 0 and plain_address(str(sock.getsockname()[0])) == peer:
        send = SAME_HOST_SEND_BYTES
    receive = config.int("socket.receive.buffer.bytes")
    if send > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send)
    if receive > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
