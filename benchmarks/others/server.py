"""A server of another log, as a child process: started, asked, stopped.

Its folder is the caller's to remove.
"""

import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kafka import free_port
from benchmarks.others.window import Window

START_LIMIT_S = 30.0


class Server(ABC):
    """One server in an empty folder. level: D1 acknowledges in the page cache, D2 on the disk."""

    name: str
    levels: tuple[str, ...]

    def __init__(self, folder: Path, level: str) -> None:
        self.folder = folder
        self.level = level
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    def start(self) -> None:
        """Start it and wait until it takes connections. Raises RuntimeError with what it said."""
        self.folder.mkdir(parents=True, exist_ok=True)
        said = self.folder / "out.txt"
        with said.open("wb") as out:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        end = time.monotonic() + START_LIMIT_S
        while True:
            try:
                self.connect().close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    text = said.read_text(errors="replace")[-1000:]
                    raise RuntimeError(f"{self.name} did not start: {text}") from None
                time.sleep(0.01)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(START_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def connect(self) -> socket.socket:
        link = socket.create_connection(("127.0.0.1", self.port), 10)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    @abstractmethod
    def command(self) -> list[str]:
        """How it is started in its folder, on its port."""

    @abstractmethod
    def windows(self, size: int, in_flight: int, connections: int) -> Sequence[Window]:
        """Connections that append records of `size` bytes, each to a new stream of its own."""

    @abstractmethod
    def held(self) -> int:
        """Records in the streams that `windows` made last; the streams are removed."""
