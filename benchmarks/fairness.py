"""Does one connection's large fetch delay another's small produce?

    python -m benchmarks.fairness [--repeat 3] [--seconds 4]

A record of 100 bytes every 5 ms, acks=1, measured from the moment it was due: alone, and beside
readers that ask for 8 MB at a time, one after the other, of what is in memory and of what is not
(the page cache is dropped before, which needs root). Appliance and Apache Kafka side by side, in
alternation, both acknowledging in the page cache. The readers are processes of their own and share
the processors with the brokers.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks import batches, fetch, kafka, machine, raw, tables
from benchmarks.compare.java_loads import drop_caches
from benchmarks.compare.systems import System
from benchmarks.fetch import Data, FetchRow, Reader
from benchmarks.peer import Peer
from benchmarks.produce import Flow, ProduceRow
from benchmarks.startup import byte_compile

EVERY_S = 0.005
SETTLE_S = 0.5
READ = FetchRow(8 << 20)
DATA_BYTES = 4 << 30
SYSTEMS = ("penstock", "kafka")


@dataclass(frozen=True)
class Beside:
    """What goes on while records are produced: so many readers, of what is on disk only or not."""

    readers: int = 0
    cold: bool = False

    @property
    def title(self) -> str:
        if not self.readers:
            return "alone"
        return f"{self.readers} readers, {'from the disk' if self.cold else 'from memory'}"


BESIDE = (Beside(), Beside(1), Beside(4), Beside(1, cold=True))
FIGURES = {"p50 ms": 0.5, "p99 ms": 0.99, "most ms": 1.0}
READING = "readers' MB/s"


def read_on(peer: Peer, data: Data, once: bool, over: Event, total: "Synchronized[int]") -> None:
    """Fetch until told to end, or to the end of what is there; add up the bytes."""
    with peer.connect(READ.size + (1 << 16)) as wire:
        reader, got = Reader(wire, READ, data), 0
        while not over.is_set():
            got += reader.once()
            if once and not reader.offset:
                break
        with total.get_lock():
            total.value += got


@contextlib.contextmanager
def readers(beside: Beside, peer: Peer, data: Data) -> Iterator["Synchronized[int]"]:
    """Its readers, as processes, for as long as the context lasts; the bytes they have read are
    known behind it. Raises RuntimeError when one of them failed."""
    fork = multiprocessing.get_context("fork")
    over, total = fork.Event(), fork.Value("q", 0)
    work = (peer, data, beside.cold, over, total)
    running = [fork.Process(target=read_on, args=work) for _ in range(beside.readers)]
    for process in running:
        process.start()
    try:
        yield total
    finally:
        over.set()
        for process in running:
            process.join()
    if any(process.exitcode for process in running):
        raise RuntimeError(f"a reader of {peer.name} failed")


def delays(peer: Peer, seconds: float) -> list[float]:
    """ms from the moment a record was due to its acknowledgement, sorted. The first half second
    does not count."""
    row = ProduceRow(1, 100, 1)
    topic = peer.create()
    found = []
    with peer.connect() as wire:
        flow = Flow(wire, row, topic, 0, batches.uniform(1, 100, 1_700_000_000_000))
        begun = time.perf_counter() + EVERY_S
        for number in range(int((seconds + SETTLE_S) / EVERY_S)):
            due = begun + number * EVERY_S
            if (ahead := due - time.perf_counter()) > 0:
                time.sleep(ahead)
            flow.send(1)
            while not flow.receive():
                pass
            if number * EVERY_S >= SETTLE_S:
                found.append((time.perf_counter() - due) * 1e3)
    peer.delete(topic)
    return sorted(found)


def one(peer: Peer, data: Data, beside: Beside, seconds: float) -> dict[str, float]:
    """The figures of one measurement."""
    os.sync()
    if beside.cold:
        drop_caches()
    begun = time.perf_counter()
    with readers(beside, peer, data) as total:
        values = delays(peer, seconds)
    passed = time.perf_counter() - begun
    found = {
        title: values[min(len(values) - 1, int(len(values) * share))]
        for title, share in FIGURES.items()
    }
    return found | ({READING: total.value / passed / 1e6} if beside.readers else {})


Found = dict[tuple[Beside, str, str], list[float]]
"""(what goes on, figure, system) to a value for each round."""


def measure(rounds: int, seconds: float, tree: Path | None) -> Found:
    """Everything, in alternation. tree: of the appliance, when not this one."""
    found: Found = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        systems = [System(name, "D1", folder / name, tree) for name in SYSTEMS]
        data = []
        for system in systems:
            stack.callback(system.stop)
            raw.warm([system.start().peer], 5)
            data.append(fetch.fill(system.peer, DATA_BYTES))
        for number in range(rounds):
            for beside in BESIDE:
                for at in range(len(systems))[:: -1 if number % 2 else 1]:
                    peer = systems[at].peer
                    figures = one(peer, data[at], beside, seconds)
                    said = ", ".join(f"{title} {value:.2f}" for title, value in figures.items())
                    print(f"{beside.title}, {peer.name}: {said}", file=sys.stderr, flush=True)
                    for title, value in figures.items():
                        found.setdefault((beside, title, peer.name), []).append(value)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fairness", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--tree", type=Path, help="the appliance's sources, when not these")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    kafka.fetch()
    byte_compile(*([options.tree] if options.tree else []))
    found = measure(options.repeat, options.seconds, options.tree)
    rows = []
    for beside, figure in dict.fromkeys(key[:2] for key in found):
        values = [found[beside, figure, name] for name in SYSTEMS]
        rows.append([beside.title, figure, *map(tables.spread, values), tables.ratio(*values)])
    print(f"{machine.state()}; medians (range)\n")
    head = ["a small produce beside", "", *SYSTEMS, "ratio"]
    print(tables.render(head, rows, markdown=options.markdown, left=2))


if __name__ == "__main__":
    main()
