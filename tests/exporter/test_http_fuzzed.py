"""Anything but HTTP, in any pieces, by seed: an answer or an end, no exception, no memory, and who
asks properly is served beside it."""

import base64
import contextlib
import random
import socket

import pytest
from test_serving import MOST, Place, config

from appliance.exporter.door import MetricsDoor
from tests.seeds import each_seed

LONGEST = 3 * 8192
"""Bytes of a request that may be kept: the longest head, and what one call brought besides."""
PASSWORD = base64.b64encode(b"anna:secret")
GOOD = (
    b"GET /metrics?x=y HTTP/1.1\r\nHost: localhost:9404\r\nAuthorization: Basic %s\r\n\r\n"
    % PASSWORD
)
WORDS = (
    b"GET", b"HEAD", b"POST", b"PRI", b" ", b"  ", b"/", b"/metrics", b"/livez?", b"?", b"%00",
    b"HTTP/1.1", b"HTTP/", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"Host:", b"Host: ", b"localhost",
    b"[::1]:1", b"[", b"::", b"[" * 40, b"256.256.1.1", b"Authorization: Basic ", PASSWORD,
    PASSWORD[:5], b"=" * 7, b"\xff\xfe", b"\0", b"\t", b"a" * 9000, b"\xe2\x80\xae", b"Basic :",
    b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked", b"\x16\x03\x01\x00\xff",
)  # fmt: skip


@pytest.fixture(params=[False, True], ids=["open", "password"])
def place(request):
    door = None
    if request.param:
        name = "penstock_metrics_basic_auth_user_info"
        door = MetricsDoor(config(**{name: "anna:secret"}), None)
    made = Place(door)
    yield made
    made.close()


def request_of(rng):
    kind = rng.random()
    if kind < 0.3:
        return b"".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 14)))
    if kind < 0.4:
        return rng.randbytes(rng.randrange(1, 400))
    data = bytearray(GOOD)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[at] = rng.randrange(256)
        elif change == 1:
            del data[at : at + rng.randrange(1, 20)]
        elif change == 2:
            data[at:at] = rng.choice(WORDS)
        else:
            del data[at:]
        data = data or bytearray(b"x")
    return bytes(data)


def send(sock, data, rng, place):
    """In pieces; what is closed takes no more."""
    at = 0
    while at < len(data):
        size = rng.choice((1, 2, 7, 60, 10_000))
        try:
            sock.sendall(data[at : at + size])
        except ConnectionError:
            return
        at += size
        if rng.random() < 0.2:
            place.turn(1)


@each_seed(5000)
def test_whatever_comes_is_answered_or_ended(place, seed):
    rng = random.Random(seed)
    for _ in range(8):
        sock = place.connect()
        send(sock, request_of(rng), rng, place)
        place.turn(2)
        assert all(len(one.told) <= LONGEST for one in place.server._callers.values())
        how = rng.random()
        if how < 0.3:
            sock.close()
        elif how < 0.6:
            with contextlib.suppress(OSError):  # it is closed already
                sock.shutdown(socket.SHUT_WR)
        place.now_ns += 1_000_000_000 * rng.choice((0, 0, 0, 11))
        place.turn(2)
        assert len(place.server._callers) <= MOST
    head, _, body = place.ask(GOOD).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and body == b"short\n"
    place.now_ns += 100_000_000_000
    place.turn(3)
    assert not place.server._callers, "nobody is kept"
