"""What the machine itself gives: a child process that is a broker with nothing in it.

It takes the very same requests over loopback, writes each batch to a file with pwritev (and
fdatasync for acks=-1), answers with the bytes a broker would answer, and serves fetches with
sendfile. It checks nothing, keeps no index and knows one partition. The load loops cannot tell it
from a broker, so it runs in the same alternation, and a broker's share of it is that broker's own
cost.

    python -m benchmarks.bare FILE [--touched]    prints its port; ends when its stdin closes
"""

import argparse
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from struct import Struct, pack_into
from typing import Final

from benchmarks import batches, requests
from benchmarks.peer import Peer

NAME: Final = "bench-000000000000-0000"
HEAD: Final = Struct(">ihhi")  # length, API key, version, correlation id
PRODUCE_AT: Final = requests.produce(NAME, 0, b"\xee" * 9, 1, 0).index(b"\xee" * 9)
ACKS_AT: Final = HEAD.size + 2 + len(requests.CLIENT_ID) + 2
CHUNK: Final = 1 << 16
ROUND: Final = 1 << 30  # where a file of touched pages starts again


class Bare:
    """The child's state: one file, its end, and two answers whose numbers are patched in place."""

    def __init__(self, path: str, touched: bool) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.touched = touched
        self.position = self.offset = 0
        self.batch = self.records = 1
        self.buffer = bytearray(CHUNK + (2 << 20))
        self.view = memoryview(self.buffer)
        produced, fetched = requests.produce_shape(NAME, 7), requests.fetch_shape(NAME, 4)
        self.produced, self.produced_at = bytearray(produced.size), produced.at
        pack_into(">i", self.produced, 0, produced.size - 4)
        self.fetched, self.fetched_at = bytearray(fetched.size), fetched.at

    def frame(self, at: int, end: int) -> bytes | bytearray:
        """Do what the frame at buffer[at:end] asks; return what to send before any file bytes."""
        key: int
        correlation: int
        _, key, _, correlation = HEAD.unpack_from(self.buffer, at)
        if key == requests.PRODUCE:
            return self._append(at, end, correlation)
        if key == requests.CREATE_TOPICS:
            self.position = self.offset = 0
            if not self.touched:
                os.ftruncate(self.fd, 0)
        return b"\0\0\0\4" + correlation.to_bytes(4, "big")

    def _append(self, at: int, end: int, correlation: int) -> bytearray:
        first = at + PRODUCE_AT
        os.pwritev(self.fd, [self.view[first:end]], self.position)
        if self.buffer[at + ACKS_AT] == 0xFF:
            os.fdatasync(self.fd)
        answer = self.produced
        pack_into(">i", answer, 4, correlation)
        pack_into(">q", answer, self.produced_at + 2, self.offset)
        self.batch = end - first
        self.records = int.from_bytes(self.buffer[first + 57 : first + batches.OVERHEAD], "big")
        self.position += self.batch
        self.offset += self.records
        if self.touched and self.position > ROUND:
            self.position = 0
        return answer

    def fetch(self, link: socket.socket, end: int) -> None:
        """Answer the Fetch v4 request that ends at `end`: head, then file bytes by sendfile."""
        offset, size = Struct(">qi").unpack_from(self.buffer, end - 12)
        start = offset // self.records * self.batch
        size = min(size, self.position - start)
        answer = self.fetched
        pack_into(">ii", answer, 0, len(answer) - 4 + size, 7)
        pack_into(">hqq", answer, self.fetched_at, 0, self.offset, self.offset)
        pack_into(">i", answer, len(answer) - 4, size)
        link.send(answer, socket.MSG_MORE)
        while size:
            sent = os.sendfile(link.fileno(), self.fd, start, size)
            start, size = start + sent, size - sent

    def serve(self, link: socket.socket) -> bool:
        """One read from a ready connection and all that is whole in it. False when it closed."""
        have = link.recv_into(self.view[:CHUNK])
        at, out = 0, bytearray()
        while have - at >= HEAD.size:
            length, key, *_ = HEAD.unpack_from(self.buffer, at)
            end = at + 4 + length
            if end > have:
                if out:
                    link.sendall(out)
                    out.clear()
                self._rest(link, have, end)
                have = end
            if key == requests.FETCH:
                self.fetch(link, end)
            else:
                out += self.frame(at, end)
            at = end
        assert at == have, "a request head was cut: the generator writes whole requests"
        if out:
            link.sendall(out)
        return have > 0

    def _rest(self, link: socket.socket, have: int, end: int) -> None:
        while have < end:
            count = link.recv_into(self.view[have:end])
            if not count:
                raise SystemExit(0)
            have += count


def child(path: str, touched: bool) -> None:
    """Listen, print the port, serve until our parent closes our standard input."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    bare, listener = Bare(path, touched), socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    links, poll = {listener.fileno(): listener}, select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                link = listener.accept()[0]
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                links[link.fileno()] = link
                poll.register(link, select.POLLIN)
                continue
            try:
                alive = bare.serve(links[fd])
            except ConnectionError:
                alive = False
            if not alive:
                poll.unregister(fd)
                links.pop(fd).close()


class BarePeer(Peer):
    """The bare child as a peer of the load loops. Close it: the child and its file go."""

    bare = True

    def __init__(self, name: str, folder: Path, touched: bool = False) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=folder, prefix="bare-")
        command = [sys.executable, "-m", "benchmarks.bare", self.folder.name + "/data"]
        self.child = subprocess.Popen(
            command + ["--touched"] * touched, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.child.stdout is not None
        port = int(self.child.stdout.readline())
        super().__init__(name, ("127.0.0.1", port), self.child.pid)

    def create(
        self, partitions: int = 1, configs: dict[str, str] | None = None, name: str = NAME
    ) -> str:
        wire = self.connect()
        wire.call(requests.create_topic(name, partitions, configs or {}))
        wire.close()
        return name

    def delete(self, topic: str) -> None:
        self.create()

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(10)
        self.folder.cleanup()


def synced_writes(folder: Path, size: int, seconds: float) -> float:
    """Writes of `size` bytes per second, each followed by fdatasync, at the end of one file."""
    data, done, position = bytes(size), 0, 0
    with tempfile.TemporaryFile(dir=folder) as file:
        begun = time.perf_counter()
        while (passed := time.perf_counter() - begun) < seconds:
            os.pwrite(file.fileno(), data, position)
            os.fdatasync(file.fileno())
            done, position = done + 1, position + size
    return done / passed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare", description=__doc__)
    parser.add_argument("path", metavar="FILE")
    parser.add_argument(
        "--touched", action="store_true", help="write the same gigabyte again and again"
    )
    given = parser.parse_args()
    child(given.path, given.touched)
