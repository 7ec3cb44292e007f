"""What a scrape of metrics costs, and whom it disturbs.

    python -m benchmarks.scrape [--shapes 1x10 1000x1 100x100] [--scrapes 20] [--seconds 8]

For each shape (topics x partitions) one appliance, interpreted unless it is installed. *rest*:
scrapes while nobody writes; *busy*: every partition is written to between two scrapes; *new*: a
topic is created right before each; *a look ago*: as long before it as the exporter waits between
two looks. CPU is the exporter's own account of making a page; all: of its process for each scrape,
sending included. Beside it: one client with one request in flight, in
turns with nobody who scrapes and with a process that does so twice a second.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from benchmarks import batches, procstat, requests, tables
from benchmarks.peer import Wire
from penstock.local import Appliance

_LIMIT_S = 60
_ROUNDS = 4
_LOOK_S = 1.5
"""The exporter looks once a second."""
_OFTEN = "two scrapes a second"
_SCRAPES = """
import select, sys, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1]).read()
    print(flush=True)
    if select.select([sys.stdin], [], [], 0.5)[0]:
        break
"""
"""A process that scrapes until its stdin is closed."""


class Scraper:
    """The exporter of one appliance."""

    def __init__(self, appliance: Appliance) -> None:
        self.url = re.findall(r"at=(http://\S+)", appliance.log_text())[-1]
        self.text = ""
        self.get()
        self.pid = _exporter(appliance)

    def get(self) -> float:
        """One scrape: wall seconds."""
        begun = time.perf_counter()
        with urllib.request.urlopen(self.url, timeout=_LIMIT_S) as answer:
            self.text = answer.read().decode()
        return time.perf_counter() - begun

    def value(self, name: str) -> float:
        """Of a metric without labels, in the last scrape."""
        return float(re.findall(rf"^{name} (\S+)$", self.text, re.MULTILINE)[0])


def _exporter(appliance: Appliance) -> int:
    """The child that has no row in the process table."""
    from appliance.observer.door import Observer

    table = Observer(str(appliance.data_dir)).tables.processes
    known = {table.pid(peer) for peer in table.peers}
    (found,) = set(appliance.pids()[1:]) - known
    return found


def _write(wire: Wire, topics: int, partitions: int, batch: bytes) -> None:
    for topic in range(topics):
        for partition in range(partitions):
            wire.call(requests.produce(f"topic-{topic:05d}", partition, batch, 1, 1))


def _create(wire: Wire) -> None:
    wire.call(requests.create_topic(f"new-{time.time_ns()}", 1, {}))


def _row(scraper: Scraper, name: str, scrapes: int, before: Callable[[], object]) -> list[str]:
    """before: called in front of each scrape."""
    page_ms, wall_ms = [], []
    cpu = procstat.cpu_seconds(scraper.pid)
    for _ in range(scrapes):
        before()
        wall_ms.append(scraper.get() * 1000)
        scraper.get()  # the cost of a page is told in the next one
        page_ms.append(scraper.value("penstock_scrape_seconds") * 1000)
    all_ms = (procstat.cpu_seconds(scraper.pid) - cpu) / scrapes / 2 * 1000
    lines = sum(not line.startswith("#") for line in scraper.text.splitlines())
    return [
        name, tables.spread(page_ms), tables.number(all_ms), tables.spread(wall_ms),
        f"{lines:,}", tables.number(len(scraper.text) / 1e6),
        tables.number(procstat.memory(scraper.pid).pss / 1e6),
    ]  # fmt: skip


def _latencies(wire: Wire, batch: bytes, seconds: float) -> list[float]:
    """µs of produce requests, one after the other."""
    request = requests.produce("topic-00000", 0, batch, 1, 1)
    found, until = [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < until:
        wire.call(request)
        found.append((time.perf_counter() - begun) * 1e6)
    return found


def _beside(scraper: Scraper, wire: Wire, batch: bytes, seconds: float) -> list[list[str]]:
    """p50 and p99 of a client, with nobody who scrapes and with a process that does."""
    found: dict[str, list[tuple[float, float]]] = {"nobody scrapes": [], _OFTEN: []}
    for _ in range(_ROUNDS):
        for name, told in found.items():
            command = [sys.executable, "-c", _SCRAPES, scraper.url]
            if name == _OFTEN:
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                assert process.stdin is not None and process.stdout is not None
                process.stdout.readline()  # it has begun
                took = _latencies(wire, batch, seconds / _ROUNDS)
                process.communicate()
            else:
                took = _latencies(wire, batch, seconds / _ROUNDS)
            cut = statistics.quantiles(took, n=100)
            told.append((cut[49], cut[98]))
    return [
        [name, *(tables.spread(values) for values in zip(*told, strict=True))]
        for name, told in found.items()
    ]


def _measured(
    topics: int, partitions: int, scrapes: int, seconds: float
) -> tuple[list[list[str]], list[list[str]]]:
    """(rows of scrapes, rows of the client beside them) of one shape."""
    batch = batches.uniform(1, 100, int(time.time() * 1000))
    title = f"{topics:,} x {partitions}"
    with (
        tempfile.TemporaryDirectory() as folder,
        Appliance(Path(folder) / "data", {"penstock.metrics.listener": "127.0.0.1:0"}) as appliance,
        Wire(("127.0.0.1", appliance.port), 1 << 20) as wire,
    ):
        for topic in range(topics):
            wire.call(requests.create_topic(f"topic-{topic:05d}", partitions, {}))
        scraper = Scraper(appliance)
        _write(wire, topics, partitions, batch)
        several: dict[str, Callable[[], object]] = {
            "rest": lambda: None,
            "busy": lambda: _write(wire, topics, partitions, batch),
            "new": lambda: _create(wire),
            "new, a look ago": lambda: (_create(wire), time.sleep(_LOOK_S)),
        }
        rows = [
            _row(scraper, f"{title}, {name}", scrapes, before) for name, before in several.items()
        ]
        beside = _beside(scraper, wire, batch, seconds)
        return rows, [[f"{title}, {row[0]}", *row[1:]] for row in beside]


def _shape(text: str) -> tuple[int, int]:
    topics, _, partitions = text.partition("x")
    return int(topics), int(partitions)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scrape", description=__doc__)
    parser.add_argument(
        "--shapes", nargs="+", type=_shape, default=[(1, 10), (1000, 1), (100, 100)]
    )
    parser.add_argument("--scrapes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rows: list[list[str]] = []
    beside: list[list[str]] = []
    for topics, partitions in options.shapes:
        some, others = _measured(topics, partitions, options.scrapes, options.seconds)
        rows += some
        beside += others
    head = [
        "topics x partitions",
        "page CPU ms",
        "all CPU ms",
        "wall ms",
        "samples",
        "MB",
        "PSS MB",
    ]
    print(tables.render(head, rows, markdown=options.markdown))
    print(tables.render(["client beside", "p50 us", "p99 us"], beside, markdown=options.markdown))


if __name__ == "__main__":
    main()
