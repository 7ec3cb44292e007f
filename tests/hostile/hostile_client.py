"""A client with bad manners: raw bytes in, raw bytes out, never waiting longer than it must."""

import contextlib
import json
import socket
from pathlib import Path
from struct import pack, unpack_from

from benchmarks import requests
from benchmarks.peer import Wire

LIMIT_S = 20
CAPTURES = Path(__file__).parent / "captures"


def captured():
    """(name, API key, version, frame) of every recorded request of real clients."""
    found = []
    for path in sorted(CAPTURES.glob("*.json")):
        for request in json.loads(path.read_text())["requests"]:
            key, version = request["key"], request["version"]
            found.append(
                (f"{path.stem}-{key}v{version}", key, version, bytes.fromhex(request["hex"]))
            )
    return found


def supported(port):
    """API key → (lowest, highest version), as the broker says itself."""
    wire = Wire(("127.0.0.1", port))
    body = wire.call(requests.api_versions())
    wire.close()
    (count,) = unpack_from(">i", body, 2)
    triples = [unpack_from(">hhh", body, 6 + 6 * i) for i in range(count)]
    return {key: (low, high) for key, low, high in triples}


class Link:
    """A connection that takes any bytes. `ended` means the broker closed or reset it."""

    def __init__(self, port, source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT_S, (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *pieces):
        """Send what the broker takes; a connection it has closed already is no failure."""
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                self.socket.sendall(piece)

    def answer(self):
        """The next answer without its length; None when the connection ended instead."""
        head = self._exact(4)
        return None if head is None else self._exact(unpack_from(">i", head)[0])

    def _exact(self, size):
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionError:
                return None
            if not more:
                return None
            data += more
        return data

    def ended(self):
        """Say that nothing more comes, read what is left; True once the broker closed its side."""
        return self.rest() is not None

    def rest(self):
        """As `ended`: what was left, or None while the broker keeps its side open."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        said = []
        try:
            while more := self.socket.recv(1 << 20):
                said.append(more)
        except ConnectionError:
            pass
        except TimeoutError:
            return None
        return b"".join(said)

    def closed_by_peer(self):
        """True once the broker has closed, though we could still send. Answers are thrown away."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True


def throw(port, *pieces):
    """Send bytes on a connection of their own; the broker must let go of it."""
    with Link(port) as link:
        link.send(*pieces)
        assert link.ended(), "the broker kept a connection whose other end is gone"


def ask(port, frame):
    """The answer to one frame (correlation id included), None when the connection ended."""
    with Link(port) as link:
        link.send(frame)
        return link.answer()


def framed(body):
    return pack(">i", len(body)) + body


def produce(port, records, topic="target", version=7):
    """Produce one hand-made record set; its error code, or None when the connection ended."""
    answer = ask(port, requests.produce(topic, 0, records, -1, 9, version))
    if answer is None:
        return None
    shape = requests.produce_shape(topic, version)
    return shape.fields.unpack_from(answer, shape.at - 4)[0]
