"""The load on a line protocol: the same request over and over, K in flight on each connection.

The same loop as produce.py, for protocols whose answers are lines of text: whole answers are
counted by a mark that each contains once.
"""

import select
import socket
import time
from collections.abc import Sequence

from benchmarks.peer import WrongAnswer

READ = 1 << 18


class Window:
    """One connection. mark: what each answer contains once; wrong: what none may contain."""

    def __init__(
        self, link: socket.socket, request: bytes, in_flight: int, mark: bytes, wrong: bytes
    ) -> None:
        self.link = link
        self.length = len(request)
        self.packed = memoryview(request * in_flight)
        self.mark = mark
        self.wrong = wrong
        self.rest = b""
        self.sent = 0

    def send(self, count: int) -> None:
        self.link.sendall(self.packed[: count * self.length])
        self.sent += count

    def receive(self) -> int:
        """One read; returns the answers that are whole now. Raises WrongAnswer."""
        got = self.link.recv(READ)
        if not got:
            raise WrongAnswer("the connection was closed")
        whole, end, self.rest = (self.rest + got).rpartition(b"\r\n")
        whole += end
        if self.wrong in b"\n" + whole:
            raise WrongAnswer(whole[-300:].decode(errors="replace"))
        return whole.count(self.mark)


def load(windows: Sequence[Window], in_flight: int, seconds: float) -> int:
    """Keep `in_flight` out on each for `seconds`, then wait for the rest: the answers."""
    done, poll = 0, select.poll()
    by_fd = {window.link.fileno(): window for window in windows}
    for fd, window in by_fd.items():
        poll.register(fd, select.POLLIN)
        window.send(in_flight)
    out = in_flight * len(windows)
    end = time.perf_counter() + seconds
    while out:
        ready = list(by_fd) if len(by_fd) == 1 else [fd for fd, _ in poll.poll(1000)]
        going = time.perf_counter() < end
        for fd in ready:
            count = by_fd[fd].receive()
            done, out = done + count, out - count
            if count and going:
                by_fd[fd].send(count)
                out += count
    return done
