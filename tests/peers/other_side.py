"""The other side of a link, over loopback, and the loop that the link hangs in."""

import select
import socket
import time

import pytest

from appliance.wire import messages
from appliance.wire.build import response
from appliance.wire.request_head import parse, response_head

METADATA = 3
ASK = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
    "include_cluster_authorized_operations": False,
}
LIMIT_S = 60


class Turns:
    """The loop that a link hangs in, and its turns."""

    def __init__(self):
        self._epoll = select.epoll()
        self._handlers = {}

    def register(self, fd, mask, handler):
        self._epoll.register(fd, mask)
        self._handlers[fd] = handler

    def modify(self, fd, mask):
        self._epoll.modify(fd, mask)

    def unregister(self, fd):
        del self._handlers[fd]
        self._epoll.unregister(fd)

    @property
    def watched(self):
        return len(self._handlers)

    def until(self, link, fact):
        end = time.monotonic() + LIMIT_S
        while not fact():
            assert time.monotonic() < end
            wait_ms = link.run_once()
            if fact():
                return
            for fd, mask in self._epoll.poll(min(wait_ms, 100) / 1000):
                self._handlers[fd].ready(mask)

    def close(self):
        self._epoll.close()


@pytest.fixture
def turns():
    turns = Turns()
    yield turns
    turns.close()


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


class OtherSide:
    """The accepted end, blocking: requests come in whole, answers go out."""

    def __init__(self, server):
        self.sock, _ = server.accept()
        self.sock.settimeout(LIMIT_S)

    def take(self):
        length = int.from_bytes(self._read(4))
        frame = self._read(length)
        return parse(memoryview(frame), 0, length)[:3]

    def answer(self, head, values):
        key, version, number = head
        body = messages.encode_response(response(key, version, values))
        self.sock.sendall(response_head(key, version, number, len(body)) + body)

    def greet(self):
        keys = [{"api_key": METADATA, "min_version": 0, "max_version": 12}]
        self.answer(self.take(), {"error_code": 0, "api_keys": keys, "throttle_time": 0})

    def _read(self, count):
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            assert piece
            data += piece
        return data


def greeted(turns, asking, server, link, make=OtherSide):
    """The other side of the connection that is being made, once it has greeted and has the request.

    asking: whose turns it takes. link: gives the one link, when there is a connection."""
    server.settimeout(0)
    accepted = []

    def accept():
        try:
            accepted.append(make(server))
        except BlockingIOError:
            return False
        return True

    turns.until(asking, accept)
    (other,) = accepted
    other.sock.setblocking(True)
    asking.run_once()
    turns.until(asking, lambda: link()._talk.in_flight == 1)
    other.greet()
    turns.until(asking, lambda: not link()._talk.waiting)
    return other


def metadata():
    return {
        "throttle_time": 0,
        "brokers": [],
        "cluster_id": "c",
        "controller_id": 2,
        "topics": [],
    }
