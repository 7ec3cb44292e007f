"""NATS JetStream: PUB with a reply subject, answered with the sequence number once the stream has
the record (https://docs.nats.io/reference/reference-protocols/nats-protocol). File storage, one
replica, everything else as it comes: synced to disk every two minutes. Debian's version cannot
sync before it answers, so there is no D2.
"""

import json
import re
import socket
from collections.abc import Sequence
from typing import Any

from benchmarks.others import debian
from benchmarks.others.server import Server
from benchmarks.others.window import Window
from benchmarks.peer import WrongAnswer

_SIZE = re.compile(rb"MSG \S+ \S+ (\d+)\r\n")


class Nats(Server):
    name = "nats"
    levels = ("D1",)

    def command(self) -> list[str]:
        listen = ["-a", "127.0.0.1", "-p", str(self.port)]
        return [*program(), *listen, "-js", "-sd", str(self.folder)]

    def windows(self, size: int, in_flight: int, connections: int) -> Sequence[Window]:
        self.streams = [f"stream{number}" for number in range(connections)]
        found = []
        for stream in self.streams:
            link = self._talk(f"to.{stream}")
            config = {"name": stream, "subjects": [f"in.{stream}"], "storage": "file"}
            ask(link, f"to.{stream}", f"STREAM.CREATE.{stream}", json.dumps(config))
            request = f"PUB in.{stream} to.{stream} {size}\r\n{'x' * size}\r\n".encode()
            found.append(Window(link, request, in_flight, b'"seq":', b'"error"'))
        return found

    def held(self) -> int:
        count = 0
        with self._talk("to.me") as link:
            for stream in self.streams:
                count += int(ask(link, "to.me", f"STREAM.INFO.{stream}")["state"]["messages"])
                ask(link, "to.me", f"STREAM.DELETE.{stream}")
        return count

    def _talk(self, inbox: str) -> socket.socket:
        """A connection that listens to the answers to `inbox`."""
        link = self.connect()
        options = '{"verbose":false,"pedantic":false}'
        link.sendall(f"CONNECT {options}\r\nSUB {inbox} 1\r\nPING\r\n".encode())
        said = b""
        while not said.endswith(b"PONG\r\n"):
            said += link.recv(1 << 16)
        return link


def program() -> list[str]:
    return debian.program("usr/sbin/nats-server", "nats-server")


def ask(link: socket.socket, inbox: str, what: str, body: str = "") -> dict[str, Any]:
    """One request to JetStream's API. Raises WrongAnswer with its error."""
    link.sendall(f"PUB $JS.API.{what} {inbox} {len(body)}\r\n{body}\r\n".encode())
    said = b""
    while True:
        said += link.recv(1 << 16)
        found = _SIZE.search(said)
        if found and len(said) >= found.end() + int(found[1]):
            break
    answer: dict[str, Any] = json.loads(said[found.end() : found.end() + int(found[1])])
    if "error" in answer:
        raise WrongAnswer(f"{what}: {answer['error']}")
    return answer
