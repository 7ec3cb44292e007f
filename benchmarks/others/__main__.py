"""Appends to an appliance, to Redis Streams and to NATS JetStream, each by its own protocol.

    python -m benchmarks.others [--repeat 3] [--seconds 2]

Every round starts all three in empty folders, one after the other. A record is acknowledged before
it counts, and what the server says it holds must be what was acknowledged. Rows keep so many
records in flight: an appliance takes those of the last row in batches of 200, as Kafka's clients
send them; the others take each by itself, as theirs do.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import procstat, produce, tables
from benchmarks.compare.systems import LEVELS, System
from benchmarks.others import debian, nats, redis
from benchmarks.others.nats import Nats
from benchmarks.others.redis import Redis
from benchmarks.others.server import Server
from benchmarks.others.window import load
from benchmarks.peer import WrongAnswer
from benchmarks.produce import ProduceRow
from benchmarks.startup import byte_compile

SYSTEMS = ("penstock", "redis", "nats")
OTHERS: dict[str, type[Server]] = {"redis": Redis, "nats": Nats}


@dataclass(frozen=True)
class Row:
    """size: of a record, bytes. in_flight: records on each connection. batch: how many of them an
    appliance takes in one request."""

    size: int
    in_flight: int
    connections: int = 1
    batch: int = 1

    @property
    def title(self) -> str:
        text = f"{self.size:,} B, {self.in_flight:,} in flight"
        return text + (f", {self.connections} connections" if self.connections > 1 else "")


ROWS = (Row(100, 1), Row(100, 5), Row(100, 1, 50), Row(16_000, 5), Row(100, 1000, batch=200))


@dataclass(frozen=True)
class Found:
    """records_s: acknowledged. cpu_us: of the server for each record."""

    records_s: float
    cpu_us: float


def ours(system: System, row: Row, seconds: float) -> Found:
    acks = 1 if system.level == "D1" else -1
    flight = row.in_flight // row.batch
    shape = ProduceRow(row.batch, row.size, flight, acks, row.connections)
    result = produce.run(system.peer, shape, seconds)
    assert result.cpu_us is not None
    return Found(result.requests_s * row.batch, result.cpu_us / row.batch)


def theirs(server: Server, row: Row, seconds: float) -> Found:
    windows = server.windows(row.size, row.in_flight, row.connections)
    try:
        load(windows, row.in_flight, min(0.3, seconds / 4))
        cpu, begun = procstat.cpu_seconds(server.pid), time.perf_counter()
        done = load(windows, row.in_flight, seconds)
        passed, cpu = time.perf_counter() - begun, procstat.cpu_seconds(server.pid) - cpu
    finally:
        for window in windows:
            window.link.close()
    sent, held = sum(window.sent for window in windows), server.held()
    if held != sent:
        raise WrongAnswer(f"{server.name} holds {held} records of {sent}")
    return Found(done / passed, cpu / done * 1e6)


def one(name: str, level: str, folder: Path, seconds: float) -> tuple[dict[Row, Found], float]:
    """All rows on one system, started and stopped here, and its memory afterwards, MB PSS."""
    server: System | Server
    server = System(name, level, folder) if name == "penstock" else OTHERS[name](folder, level)
    try:
        server.start()
        found = {}
        for row in ROWS:
            if isinstance(server, System):
                found[row] = ours(server, row, seconds)
            else:
                found[row] = theirs(server, row, seconds)
            said = f"{found[row].records_s:,.0f}/s, {found[row].cpu_us:.1f} µs CPU each"
            print(f"{level} {name}, {row.title}: {said}", file=sys.stderr, flush=True)
        return found, procstat.memory(server.pid).pss / 1e6
    finally:
        server.stop()


Figures = dict[tuple[str, str, str], list[float]]
"""(level, figure, system) to a value for each round."""


def measure(rounds: int, seconds: float) -> Figures:
    """Everything, in alternation."""
    figures: Figures = {}
    for number in range(rounds):
        for level in LEVELS:
            names = [n for n in SYSTEMS if n == "penstock" or level in OTHERS[n].levels]
            for name in names[:: -1 if number % 2 else 1]:
                with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
                    found, pss = one(name, level, Path(folder) / name, seconds)
                for row, result in found.items():
                    cost = f"CPU µs each, {row.title}"
                    figures.setdefault((level, row.title, name), []).append(result.records_s)
                    figures.setdefault((level, cost, name), []).append(result.cpu_us)
                figures.setdefault((level, "PSS MB afterwards", name), []).append(pss)
    return figures


def lines(found: Figures) -> list[list[str]]:
    """One for each level and figure: all systems, and ours ÷ each other."""
    rows = []
    for level, figure in dict.fromkeys(key[:2] for key in found):
        values = {name: found.get((level, figure, name), []) for name in SYSTEMS}
        ratios = [tables.ratio(values["penstock"], values[name]) for name in SYSTEMS[1:]]
        cells = [tables.spread(values[name]) for name in SYSTEMS]
        rows.append([figure, level, *cells, *ratios])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.others", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each row")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    for program in (redis.program(), nats.program()):
        print(debian.version(program))
    byte_compile()
    rows = lines(measure(options.repeat, options.seconds))
    head = ["records acknowledged per second", "level", *SYSTEMS]
    head += [f"÷ {name}" for name in SYSTEMS[1:]]
    print(f"load average {os.getloadavg()[0]:.1f}; medians (range)\n")
    print(tables.render(head, rows, markdown=options.markdown, left=2))


if __name__ == "__main__":
    main()
