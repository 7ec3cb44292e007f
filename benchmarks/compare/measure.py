"""One measurement: a load on a system, and what system, client and memory cost meanwhile.

A load returns its figures by name; `FIGURES` says what each name means and whether more is better.
Called by the run.
"""

import os
import resource
import threading
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from benchmarks import procstat
from benchmarks.compare.systems import System

SAMPLE_S = 0.5


class Figure(NamedTuple):
    """unit and name as a table shows them; more_is_better: how to read a ratio."""

    title: str
    more_is_better: bool


FIGURES = {
    "requests_s": Figure("requests/s", True),
    "records_s": Figure("records/s", True),
    "mb_s": Figure("MB/s", True),
    "read_mb_s": Figure("read MB/s", True),
    "fairness": Figure("slowest client ÷ fastest", True),
    "rate": Figure("records/s asked for", True),
    "ack_p50_ms": Figure("ack p50 ms", False),
    "ack_p99_ms": Figure("ack p99 ms", False),
    "avg_ms": Figure("average ms", False),
    "p50_ms": Figure("p50 ms", False),
    "p99_ms": Figure("p99 ms", False),
    "p999_ms": Figure("p99.9 ms", False),
    "max_ms": Figure("max ms", False),
    "late_p99_ms": Figure("generator late p99 ms", False),
    "first_ack_s": Figure("first ack s", False),
    "all_ready_s": Figure("all partitions s", False),
    "stop_s": Figure("orderly stop s", False),
    "cpu_percent": Figure("CPU % of a core", False),
    "wakeups_s": Figure("wake-ups/s", False),
    "pss_mb": Figure("PSS MB", False),
    "kb_per_connection": Figure("KB per connection", False),
    "broker_cpu_s_gb": Figure("broker CPU s/GB", False),
    "client_cpu_s_gb": Figure("client CPU s/GB", False),
    "cpu_us_request": Figure("broker CPU µs/request", False),
    "peak_pss_mb": Figure("peak PSS MB", False),
}
COSTS = ("broker_cpu_s_gb", "client_cpu_s_gb", "cpu_us_request", "peak_pss_mb")


@dataclass(frozen=True)
class Effort:
    """How long to measure. seconds: of a timed load; share: of the records of a counted one."""

    seconds: float
    share: float

    def count(self, records: int) -> int:
        return max(1000, int(records * self.share))


def size_text(size: int) -> str:
    """A record's size in the largest decimal unit that fits."""
    for unit, factor in (("MB", 1_000_000), ("KB", 1000)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


class Load(Protocol):
    """What a row does to a running system. `bytes` among its figures are those it moved."""

    def prepare(self, system: System, effort: Effort) -> None: ...

    def run(self, system: System, effort: Effort) -> dict[str, float]: ...


class Memory(threading.Thread):
    """Samples the PSS of a process tree until it is closed. Use as a context manager."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = procstat.memory(pid).pss
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(SAMPLE_S):
            self.peak = max(self.peak, procstat.memory(self.pid).pss)

    def __enter__(self) -> "Memory":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        self.peak = max(self.peak, procstat.memory(self.pid).pss)


def client_cpu() -> float:
    """CPU seconds of this process and of the load generators it has waited for."""
    own, ended = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def measure(load: Load, system: System, effort: Effort) -> dict[str, float]:
    """Run the load once on a system that runs; its figures and the costs. Raises what it raises."""
    load.prepare(system, effort)
    os.sync()
    broker, client = procstat.cpu_seconds(system.pid), client_cpu()
    with Memory(system.pid) as memory:
        figures = load.run(system, effort)
    broker, client = procstat.cpu_seconds(system.pid) - broker, client_cpu() - client
    moved = figures.pop("bytes", 0.0)
    if moved:
        figures["broker_cpu_s_gb"] = broker / moved * 1e9
        figures["client_cpu_s_gb"] = client / moved * 1e9
    figures["peak_pss_mb"] = memory.peak / 1e6
    return figures
