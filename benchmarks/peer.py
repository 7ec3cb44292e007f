"""One peer under load: an address, the process tree behind it, and blocking connections to it.

Called by the load loops. Everything here is outside the measured loop, except `Wire.exact`.
"""

import itertools
import socket
import ssl
import time
from struct import Struct, unpack_from
from typing import Final

from benchmarks import procstat, requests

_numbers = itertools.count(1)
LENGTH: Final = Struct(">i")
TIMEOUT_S: Final = 30.0


class WrongAnswer(Exception):
    """The peer answered, but not what a correct broker answers; the run counts for nothing."""


class Wire:
    """A blocking connection with one receive buffer that is never reallocated. context: over TLS,
    which is agreed upon when this returns."""

    def __init__(
        self,
        address: tuple[str, int],
        buffer_bytes: int = 1 << 16,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            try:
                self.socket = context.wrap_socket(self.socket, server_hostname=address[0])
            except BaseException:
                self.socket.close()
                raise
        self.buffer = bytearray(buffer_bytes)
        self.view = memoryview(self.buffer)

    def exact(self, have: int, need: int) -> None:
        """Fill the buffer from `have` to at least `need` bytes, not one more."""
        view, receive = self.view, self.socket.recv_into
        while have < need:
            count = receive(view[have:need])
            if not count:
                raise WrongAnswer("the peer closed the connection")
            have += count

    def call(self, request: bytes) -> bytes:
        """Send one request and return the answer's bytes behind the correlation id."""
        self.socket.sendall(request)
        self.exact(0, 4)
        size = int(LENGTH.unpack_from(self.buffer)[0])
        if size > len(self.buffer):
            raise WrongAnswer(f"an answer of {size} bytes to an administrative request")
        self.exact(0, size)
        return bytes(self.view[4:size])

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Peer:
    """A broker, or a bare loop that answers like one. name: as it appears in tables. context: of
    its listener with TLS."""

    bare = False

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        pid: int | None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self.pid = pid
        self.context = context

    def connect(self, buffer_bytes: int = 1 << 16) -> Wire:
        return Wire(self.address, buffer_bytes, self.context)

    def cpu_seconds(self) -> float | None:
        """CPU time of the process tree, None when we were not told a pid."""
        return None if self.pid is None else procstat.cpu_seconds(self.pid)

    def create(
        self, partitions: int = 1, configs: dict[str, str] | None = None, name: str = ""
    ) -> str:
        """A fresh topic, ready to be used. By default its files go at once when it is deleted."""
        name = name or f"bench-{time.time_ns() // 1000 % 10**12:012d}-{next(_numbers):04d}"
        wire = self.connect()
        try:
            settings = {"file.delete.delay.ms": "0"} if configs is None else configs
            answer = wire.call(requests.create_topic(name, partitions, settings))
            (code,) = unpack_from(">h", answer, 4 + 4 + 2 + len(name))
            if code:
                raise WrongAnswer(f"CreateTopics answered error {code}")
        finally:
            wire.close()
        self.wait_served(name, partitions, 10 + partitions / 10)
        return name

    def wait_served(self, topic: str, partitions: int = 1, limit_s: float = 10) -> None:
        """Until every partition has a leader that answers as one. Raises WrongAnswer."""
        end = time.monotonic() + limit_s
        with self.connect((1 << 16) + 128 * partitions) as wire:
            while not _serves(wire, topic, partitions):
                if time.monotonic() > end:
                    raise WrongAnswer(f"a partition of {topic} has no leader after {limit_s} s")
                time.sleep(0.01)

    def delete(self, topic: str) -> None:
        wire = self.connect()
        try:
            wire.call(requests.delete_topic(topic))
        finally:
            wire.close()


def _serves(wire: Wire, topic: str, partitions: int) -> bool:
    """Does the broker name leaders, and do they answer as leaders?"""
    _, found = requests.known(wire.call(requests.metadata([topic])))
    if not found or any(one.leader < 0 for one in found.values()):
        return False
    for partition in range(partitions):
        answer = wire.call(requests.end_offset(topic, partition))
        if requests.END_FIELDS.unpack_from(answer, len(answer) - requests.END_FIELDS.size)[0]:
            return False
    return True
