"""Loads by the raw-protocol generator of benchmarks/: produce, fetch, many connections.

Called through rows; the same rows also run on the bare loop, the machine's own limit.
"""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import fetch, procstat, produce, requests
from benchmarks.bare import BarePeer
from benchmarks.compare.measure import Effort
from benchmarks.compare.systems import System
from benchmarks.fetch import FetchRow
from benchmarks.peer import Peer, Wire
from benchmarks.produce import ProduceRow, Result


@dataclass(frozen=True)
class Raw:
    """A row of produce.py or fetch.py. Every answer is checked there."""

    row: ProduceRow | FetchRow

    @property
    def title(self) -> str:
        return self.row.title

    def prepare(self, system: System, effort: Effort) -> None:
        if isinstance(self.row, FetchRow) and self._filled() not in system.filled:
            data = fetch.fill(system.peer, partitions=self.row.partitions)
            system.filled[self._filled()] = data

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        if isinstance(self.row, ProduceRow):
            return figures(produce.run(system.peer, self.row, effort.seconds))
        data = system.filled[self._filled()]
        assert isinstance(data, fetch.Data)
        return figures(fetch.run(system.peer, self.row, data, effort.seconds))

    @property
    def has_bare(self) -> bool:
        """The bare loop serves one connection, and knows no sessions."""
        if isinstance(self.row, FetchRow):
            return self.row.partitions == 1
        return self.row.connections == 1

    def _filled(self) -> tuple[str, int]:
        assert isinstance(self.row, FetchRow)
        return "fetch", self.row.partitions

    def bare(self, folder: Path, effort: Effort) -> dict[str, float]:
        """The same on the bare loop."""
        peer = BarePeer("bare loop", folder)
        try:
            if isinstance(self.row, ProduceRow):
                return figures(produce.run(peer, self.row, effort.seconds))
            return figures(fetch.run(peer, self.row, fetch.fill(peer), effort.seconds))
        finally:
            peer.close()


def figures(result: Result) -> dict[str, float]:
    """A generator's result under the names of a comparison. The broker's CPU is its own."""
    found = {
        "requests_s": result.requests_s,
        "mb_s": result.mb_s,
    }
    if result.cpu_us is not None:
        found["cpu_us_request"] = result.cpu_us
        found["broker_cpu_s_gb"] = result.cpu_us * result.requests_s / result.mb_s / 1e3
    return found


@dataclass(frozen=True)
class Connections:
    """Idle connections beside new ones at a fixed rate, and a bystander that asks every 10 ms.

    Times count from the moment a connection was due, not from when the generator came to it.
    """

    idle: int = 1000
    per_second: int = 200

    @property
    def title(self) -> str:
        return f"{self.idle:,} idle connections, {self.per_second} new per second, a bystander"

    def prepare(self, system: System, effort: Effort) -> None:
        pass

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        before = procstat.memory(system.pid).pss
        held: list[Wire] = []
        try:
            for _ in range(self.idle):
                held.append(system.peer.connect(1 << 13))
                held[-1].call(requests.api_versions())
            each = (procstat.memory(system.pid).pss - before) / self.idle
            new, asked = self._churn(system.peer, held[0], max(2.0, effort.seconds))
        finally:
            for wire in held:
                with contextlib.suppress(OSError):
                    wire.close()
        new.sort()
        asked.sort()
        return {
            "p50_ms": asked[len(asked) // 2] * 1e3,
            "p99_ms": asked[len(asked) * 99 // 100] * 1e3,
            "ack_p50_ms": new[len(new) // 2] * 1e3,
            "ack_p99_ms": new[len(new) * 99 // 100] * 1e3,
            "kb_per_connection": each / 1e3,
        }

    def _churn(
        self, peer: Peer, bystander: Wire, seconds: float
    ) -> tuple[list[float], list[float]]:
        bystander.buffer = bytearray(1 << 16)
        bystander.view = memoryview(bystander.buffer)
        begun, new, asked = time.perf_counter(), [], []
        for number in range(int(seconds * self.per_second)):
            due = begun + number / self.per_second
            if (ahead := due - time.perf_counter()) > 0:
                time.sleep(ahead)
            with peer.connect() as wire:
                wire.call(requests.api_versions())
            new.append(time.perf_counter() - due)
            if number % max(1, self.per_second // 100) == 0:
                at = time.perf_counter()
                bystander.call(requests.metadata([]))
                asked.append(time.perf_counter() - at)
        return new, asked
