"""Redis Streams: XADD in RESP (https://redis.io/docs/latest/develop/reference/protocol-spec/), with
the append-only file, which is written before an answer goes out.
"""

import socket
from collections.abc import Sequence

from benchmarks.others import debian
from benchmarks.others.server import Server
from benchmarks.others.window import Window

PACKAGES = ("redis-tools", "redis-server", "liblzf1", "libjemalloc2", "libatomic1")
FSYNC = {"D1": "everysec", "D2": "always"}


class Redis(Server):
    name = "redis"
    levels = ("D1", "D2")

    def command(self) -> list[str]:
        settings = {
            "port": str(self.port), "bind": "127.0.0.1", "dir": str(self.folder), "save": "",
            "appendonly": "yes", "appendfsync": FSYNC[self.level],
        }  # fmt: skip
        options = [part for key, value in settings.items() for part in (f"--{key}", value)]
        return [*program(), *options]

    def windows(self, size: int, in_flight: int, connections: int) -> Sequence[Window]:
        self.streams = [f"stream-{number}" for number in range(connections)]
        found = []
        for stream in self.streams:
            request = resp("XADD", stream, "*", "v", "x" * size)
            # "$15", then "<ms>-<sequence>": one dash in each answer; errors begin with one.
            found.append(Window(self.connect(), request, in_flight, b"-", b"\n-"))
        return found

    def held(self) -> int:
        with self.connect() as link:
            count = sum(number(link, resp("XLEN", stream)) for stream in self.streams)
            number(link, resp("DEL", *self.streams))
        return count


def program() -> list[str]:
    return debian.program("usr/bin/redis-server", *PACKAGES)


def resp(*words: str) -> bytes:
    """A command: an array of bulk strings."""
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


def number(link: socket.socket, request: bytes) -> int:
    """The integer that answers a command. Raises ValueError for anything else."""
    link.sendall(request)
    said = b""
    while not said.endswith(b"\r\n"):
        said += link.recv(4096)
    return int(said.removeprefix(b":"))
