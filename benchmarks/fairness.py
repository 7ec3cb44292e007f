"""Does one connection's large fetch delay another's small produce?

    python -m benchmarks.fairness [--repeat 3] [--seconds 5]

A record of 100 bytes every 5 ms, acks=1, measured from the moment it was due: alone, and beside
readers that ask for 8 MB at a time, one after the other. Appliance and Apache Kafka side by side,
in alternation, both acknowledging in the page cache. The readers are processes of their own and
share the processors with the brokers.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks import batches, fetch, kafka, raw, tables
from benchmarks.compare.systems import System
from benchmarks.fetch import Data, FetchRow, Reader
from benchmarks.peer import Peer
from benchmarks.produce import Flow, ProduceRow
from benchmarks.startup import byte_compile

EVERY_S = 0.005
READ = FetchRow(8 << 20)
READERS = (0, 1, 4)
SYSTEMS = ("penstock", "kafka")
QUANTILES = (("p50", 0.5), ("p99", 0.99), ("most", 1.0))


def read_on(peer: Peer, data: Data, over: Event) -> None:
    """Fetch until told to end."""
    with peer.connect(READ.size + (1 << 16)) as wire:
        reader = Reader(wire, READ, data)
        while not over.is_set():
            reader.once()


@contextmanager
def readers(count: int, peer: Peer, data: Data) -> Iterator[None]:
    """So many readers, as processes, for as long as the context lasts. Raises RuntimeError when one
    of them failed."""
    fork = multiprocessing.get_context("fork")
    over = fork.Event()
    running = [fork.Process(target=read_on, args=(peer, data, over)) for _ in range(count)]
    for process in running:
        process.start()
    try:
        yield
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
        for number in range(int((seconds + 0.5) / EVERY_S)):
            due = begun + number * EVERY_S
            if (ahead := due - time.perf_counter()) > 0:
                time.sleep(ahead)
            flow.send(1)
            while not flow.receive():
                pass
            if number * EVERY_S >= 0.5:
                found.append((time.perf_counter() - due) * 1e3)
    peer.delete(topic)
    return sorted(found)


def measure(rounds: int, seconds: float) -> dict[tuple[int, str, str], list[float]]:
    """(readers, quantile, system) to a value in ms for each round."""
    found: dict[tuple[int, str, str], list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        systems = [System(name, "D1", folder / name) for name in SYSTEMS]
        data = []
        for system in systems:
            stack.callback(system.stop)
            raw.warm([system.start().peer], 5)
            data.append(fetch.fill(system.peer))
        for number in range(rounds):
            for count in READERS:
                for at in range(len(systems))[:: -1 if number % 2 else 1]:
                    peer = systems[at].peer
                    with readers(count, peer, data[at]):
                        values = delays(peer, seconds)
                    for title, share in QUANTILES:
                        value = values[min(len(values) - 1, int(len(values) * share))]
                        found.setdefault((count, title, peer.name), []).append(value)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fairness", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    kafka.fetch()
    byte_compile()
    found = measure(options.repeat, options.seconds)
    rows = [
        [
            f"{count} readers of 8 MB" if count else "alone",
            title,
            *(tables.spread(found[count, title, name]) for name in SYSTEMS),
            tables.ratio(found[count, title, "penstock"], found[count, title, "kafka"]),
        ]
        for count in READERS
        for title, _ in QUANTILES
    ]
    print(f"load average {os.getloadavg()[0]:.1f}; ms, medians (range)\n")
    head = ["a small produce, ms", "", *SYSTEMS, "ratio"]
    print(tables.render(head, rows, markdown=options.markdown, left=2))


if __name__ == "__main__":
    main()
