"""The brokers under comparison: how each is started fresh in a folder, found, stopped and killed.

A level of durability is stated for both sides: D1 acknowledges what is in the page cache, D2 what
is on the disk. Called by the run and by the loads that start brokers of their own.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from benchmarks import kafka, procstat, requests
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.startup import appliance_command

START_LIMIT_S = 180.0
LEVELS = {"D1": "acknowledged in the page cache", "D2": "acknowledged on the disk"}
SETTINGS = {
    ("penstock", "D1"): {"log.flush.policy": "os"},
    ("penstock", "D2"): {"log.flush.policy": "group"},
    ("kafka", "D1"): {"group.initial.rebalance.delay.ms": "0"},
    ("kafka", "D2"): {"group.initial.rebalance.delay.ms": "0", "log.flush.interval.messages": "1"},
}
HEAP = "1g"


class NotObtainable(Exception):
    """A tool or a right that a row needs is absent here; the text says which."""


class System:
    """One broker. Start it, load its `peer`, stop it; its folder is the caller's to remove."""

    def __init__(self, name: str, level: str, data: Path, tree: Path | None = None) -> None:
        """data: absolute. tree: the sources of the appliance, when not those of this process."""
        self.name = name
        self.level = level
        self.data = data
        self.tree = tree if name == "penstock" else None
        self.port = kafka.free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.filled: dict[object, object] = {}

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        return SETTINGS[self.name, self.level]

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    @property
    def peer(self) -> Peer:
        return Peer(self.name, ("127.0.0.1", self.port), self.pid)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def prepare(self) -> list[str]:
        """Format the folder where that is a step of its own. Returns the command that starts it."""
        self.data.mkdir(parents=True, exist_ok=True)
        if self.name == "kafka":
            node = kafka.Kafka(self.data, self.port, HEAP)
            node.settings |= self.settings
            return kafka.java("kafka.Kafka", node.format(), heap=HEAP)
        command = appliance_command(self.data / "penstock", self.port)
        return command + [part for key, value in self.settings.items()
                          for part in ("-o", f"{key}={value}")]  # fmt: skip

    def launch(self) -> float:
        """Start it without waiting. Returns the moment before exec, seconds of time.monotonic."""
        command = self.prepare()
        with (self.data / "out.txt").open("ab") as out:
            begun = time.monotonic()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.tree
            )
        return begun

    def start(self) -> "System":
        """Start it and wait until it answers. Raises RuntimeError with what it said."""
        end = self.launch() + START_LIMIT_S
        while not self.answers():
            if not self.alive or time.monotonic() > end:
                said = (self.data / "out.txt").read_text(errors="replace")[-2000:]
                self.kill()
                raise RuntimeError(f"{self.name} did not start: {said}")
            time.sleep(0.005)
        return self

    def answers(self) -> bool:
        """Does a new connection get ApiVersions answered?"""
        try:
            with Wire(("127.0.0.1", self.port)) as wire:
                wire.call(requests.api_versions())
        except (OSError, WrongAnswer):
            return False
        return True

    def stop(self, limit_s: float = 60) -> None:
        """SIGTERM, then SIGKILL when that is not enough. Harmless when it is not running."""
        if not self.alive:
            return
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to every process of it; returns when all are gone."""
        if self.process is None:
            return
        pids = set(procstat.tree(self.process.pid)) | {self.process.pid}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        while any(procstat.tree(pid) for pid in pids):
            time.sleep(0.005)


def version(name: str) -> str:
    """What is compared, with its version."""
    if name == "kafka":
        folder = kafka.libs()
        assert folder is not None, "fetched before a run starts"
        jar = next(folder.glob("kafka-clients-*.jar"))
        return "Apache Kafka " + jar.stem.removeprefix("kafka-clients-")
    where = Path(__file__).parent
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=where, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    python = sys.version.split()[0]
    project = tomllib.loads((where.parents[1] / "pyproject.toml").read_text())["project"]
    return f"Penstock {project['version']} ({said.stdout.strip()}), Python {python}"
