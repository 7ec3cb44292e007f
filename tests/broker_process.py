"""A broker as an operating system process, for the tests that talk to it from outside.

`Broker` starts the appliance with its own command. With PENSTOCK_TEST_BROKER=kafka it starts Apache
Kafka instead, so that what a test expects can be checked against Kafka itself.
Used by tests/compat, tests/faults and tests/hostile.
"""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from struct import pack

import pytest

from benchmarks import kafka, procstat, requests
from benchmarks.peer import Peer, Wire, WrongAnswer
from penstock import tied
from tests import forked

START_LIMIT_S = 60
STOP_LIMIT_S = 60
KAFKA = os.environ.get("PENSTOCK_TEST_BROKER") == "kafka"


class Broker:
    """One broker on a free loopback port. Stop it, or use it as a context manager.

    settings: Kafka's property names; they override the configuration on every start.
    """

    host = "127.0.0.1"

    def __init__(self, data: Path, settings: dict[str, str] | None = None) -> None:
        self.data = data
        self.settings = settings or {}
        self.port = kafka.free_port()
        self.process: subprocess.Popen | None = None
        self.log = data.parent / (data.name + ".out")

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def peer(self) -> Peer:
        return Peer("broker", (self.host, self.port), self.process.pid)

    @property
    def files(self) -> Path:
        """The folder that holds topic-partition folders."""
        return next(self.data.rglob("meta.properties")).parent

    def command(self) -> list[str]:
        if KAFKA:
            if reason := kafka.unavailable():
                pytest.skip(reason)
            node = kafka.Kafka(self.data, self.port)
            node.settings |= self.settings
            self.data.mkdir(parents=True, exist_ok=True)
            return kafka.java("kafka.Kafka", node.format(), heap="512m")
        command = [sys.executable, "-m", "console", "up"]
        command += ["--data", str(self.data), "--listen", f"127.0.0.1:{self.port}"]
        for key, value in self.settings.items():
            command += ["-o", f"{key}={value}"]
        return command

    def start(self, *, wait: bool = True) -> "Broker":
        """Start it; by default wait until a request is answered."""
        with self.log.open("ab") as out:
            self.process = forked.start(
                self.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=os.environ | tied.environment(),
            )  # fmt: skip
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Until ApiVersions and Metadata are answered; fails with the broker's output."""
        end = time.monotonic() + START_LIMIT_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the broker did not start:\n{self.output()[-3000:]}")
            time.sleep(0.01)

    def answers(self) -> bool:
        """Is somebody served who connects now?"""
        return answers(self.port, self.host)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def pids(self) -> list[int]:
        """Every living process of it, its first one first."""
        root = self.process.pid
        return [root, *(pid for pid in procstat.tree(root) if pid != root)]

    def memory(self) -> int:
        """Proportional set size of the whole tree, bytes."""
        return procstat.memory(self.process.pid).pss

    def stop(self) -> int:
        """SIGTERM and wait. Returns the exit code; kills it and fails when it does not end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the broker did not stop after SIGTERM") from None

    def kill(self) -> None:
        """SIGKILL to all its processes, as much at once as can be; wait until they are gone."""
        pids = self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(STOP_LIMIT_S)
        end = time.monotonic() + STOP_LIMIT_S
        while any(Path(f"/proc/{pid}").exists() and _runs(pid) for pid in pids):
            assert time.monotonic() < end, "a killed process does not go away"
            time.sleep(0.005)

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            try:
                self.stop()
            finally:
                if self.process.poll() is None:
                    self.kill()


def _runs(pid: int) -> bool:
    """False for a process that ended, even if nobody has waited for it yet.

    A killed process whose first thread is a zombie still runs while another of its threads sits in
    a system call, a sync for one, and holds its files.
    """
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
    return False


def answers(port: int, host: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> bool:
    """Does a new connection get ApiVersions and Metadata answered? context: over TLS."""
    try:
        wire = Wire((host, port), context=context)
    except OSError:
        return False
    try:
        wire.call(requests.api_versions())
        wire.call(requests.metadata([]))
    except (OSError, WrongAnswer):
        return False
    finally:
        wire.close()
    return True


def reset(link: socket.socket) -> None:
    """Close with a RST instead of a FIN, as a client that was killed in the middle may."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
    link.close()
