"""How the cost of a request grows with what there is: curves, not points, beside Apache Kafka.

    python -m benchmarks.curves [--curves connections 'part*' …] [--full] [--tree TREE] [--markdown]
                                [--chart FILE.svg]

Each point is a load of one record of 100 bytes (of N bytes on the curve of record sizes), one in
flight on each connection, both brokers in alternation, each acknowledging in the page cache. Of a
point are told requests/s, p99, the broker's processor time per request and its memory; of a curve
the exponent of each of the last two, by least squares over the logarithms: 0 is constant, 1 grows
as the work does. --chart needs matplotlib (the extra `bench`).
"""

import argparse
import contextlib
import math
import os
import select
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import batches, commits, kafka, machine, procstat, raw, tables
from benchmarks.commits import CommitRow
from benchmarks.compare.systems import System
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.produce import Flow, ProduceRow
from benchmarks.startup import byte_compile

SYSTEMS: Final = ("penstock", "kafka")
MOST_FLOWS: Final = 64
"""Connections over which the partitions of a curve are loaded, evenly spaced."""
MOST_CREATED: Final = 2000
"""Partitions of one topic: Apache Kafka refuses to create 10,000 in one request."""
BUFFER: Final = 1 << 12


class Point(NamedTuple):
    """What was measured. p99_ms: NaN where single answers were not timed. cpu_us: of the broker's
    process tree per request. memory: its proportional set size behind the load, bytes."""

    requests_s: float
    p99_ms: float
    cpu_us: float
    memory: int


@dataclass(frozen=True)
class Curve:
    """load: of a peer at one place of the curve, for so many seconds. more: only with --full."""

    title: str
    points: tuple[int, ...]
    more: tuple[int, ...]
    load: Callable[[Peer, int, float], Point]


def over_connections(peer: Peer, count: int, seconds: float) -> Point:
    """As many connections as said, to at most 64 partitions."""
    return _produce(peer, min(count, MOST_FLOWS), count, 100, seconds)


def over_partitions(peer: Peer, count: int, seconds: float) -> Point:
    """So many partitions, at most 64 of them loaded."""
    return _produce(peer, count, min(count, MOST_FLOWS), 100, seconds)


def over_sizes(peer: Peer, size: int, seconds: float) -> Point:
    """One connection, one record of this size."""
    return _produce(peer, 1, 1, size, seconds)


def over_groups(peer: Peer, count: int, seconds: float) -> Point:
    """Each group commits by a connection of its own."""
    done = commits.run(peer, CommitRow(count, 1), seconds)
    assert peer.pid is not None and done.cpu_us is not None, "a system that was started here"
    return Point(done.requests_s, math.nan, done.cpu_us, procstat.memory(peer.pid).pss)


CURVES: Final = {
    "connections": Curve("connections", (1, 10, 100, 1000), (5000,), over_connections),
    "partitions": Curve("partitions", (1, 100, 1000, 10_000), (50_000,), over_partitions),
    "groups": Curve("groups", (1, 10, 100, 500), (), over_groups),
    "sizes": Curve("bytes of a record", (10, 1000, 100_000, 900_000), (), over_sizes),
}


def _produce(peer: Peer, partitions: int, flows: int, size: int, seconds: float) -> Point:
    topics = [
        peer.create(min(MOST_CREATED, partitions - done))
        for done in range(0, partitions, MOST_CREATED)
    ]
    row = ProduceRow(1, size, 1, connections=max(2, flows))  # others write to its partition, too
    batch = batches.uniform(1, size, time.time_ns() // 1_000_000)
    open_ones: list[Flow] = []
    try:
        for number in range(flows):
            wire, at = Wire(peer.address, BUFFER), number * partitions // flows % partitions
            topic, partition = topics[at // MOST_CREATED], at % MOST_CREATED
            open_ones.append(Flow(wire, row, topic, partition, batch))
        timed_load(open_ones, min(0.3, seconds / 4))
        cpu, begun = peer.cpu_seconds(), time.perf_counter()
        delays = timed_load(open_ones, seconds)
        passed, after = time.perf_counter() - begun, peer.cpu_seconds()
        assert peer.pid is not None and cpu is not None and after is not None
        memory = procstat.memory(peer.pid).pss
    finally:
        for flow in open_ones:
            flow.wire.close()
        for topic in topics:
            peer.delete(topic)
    p99 = sorted(delays)[int(len(delays) * 0.99)]
    return Point(len(delays) / passed, p99 * 1e3, (after - cpu) / len(delays) * 1e6, memory)


def timed_load(flows: Sequence[Flow], seconds: float) -> list[float]:
    """One request in flight on each for so long; seconds from each request to its answer."""
    poll, by_fd = select.epoll(), {flow.wire.socket.fileno(): flow for flow in flows}
    clock, delays, sent = time.perf_counter, [], {}
    with poll:
        for fd, flow in by_fd.items():
            poll.register(fd, select.EPOLLIN)
            sent[fd] = clock()
            flow.send(1)
        end = clock() + seconds
        while sent:
            for fd, _ in poll.poll(30):
                flow = by_fd[fd]
                if flow.receive():
                    now = clock()
                    delays.append(now - sent.pop(fd))
                    if now < end:
                        sent[fd] = now
                        flow.send(1)
            if clock() > end + 30:
                raise WrongAnswer(f"{len(sent)} requests were not answered within 30 s")
    return delays


def exponent(points: Sequence[int], values: Sequence[float]) -> float:
    """The slope of log(value) over log(point), by least squares."""
    if len(points) < 2 or min(values) <= 0:
        return math.nan
    return statistics.linear_regression(
        [math.log(one) for one in points], [math.log(one) for one in values]
    ).slope


Found = dict[tuple[str, int, str], list[Point]]
"""(curve, place on it, system) to a point for each round."""


def measure(
    names: Sequence[str], full: bool, rounds: int, seconds: float, tree: Path | None
) -> Found:
    """All points of these curves, in alternation. What fails is said and left out."""
    found: Found = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        for name in names:
            curve = CURVES[name]
            systems = [System(one, "D1", folder / name / one, tree) for one in SYSTEMS]
            with contextlib.ExitStack() as running:
                for system in systems:
                    running.callback(system.stop)
                    raw.warm([system.start().peer], 5)
                for point in curve.points + (curve.more if full else ()):
                    for number in range(rounds):
                        for system in systems[:: -1 if number % 2 else 1]:
                            _once(found, name, point, system, seconds)
    return found


def _once(found: Found, name: str, point: int, system: System, seconds: float) -> None:
    os.sync()
    try:
        reached = CURVES[name].load(system.peer, point, seconds)
    except (WrongAnswer, OSError) as error:
        print(f"  {name} {point:,}, {system.name} failed: {error}", file=sys.stderr, flush=True)
        return
    said = f"{reached.requests_s:,.0f}/s, {reached.cpu_us:.1f} µs"
    print(f"  {name} {point:,}, {system.name}: {said}", file=sys.stderr, flush=True)
    found.setdefault((name, point, system.name), []).append(reached)


def median(points: Sequence[Point], field: str) -> float:
    """Of this field over the rounds; NaN without one."""
    return statistics.median(getattr(one, field) for one in points) if points else math.nan


def report(found: Found, markdown: bool) -> str:
    """A line for each point, and one for the exponents of each curve."""
    head = ["curve", "", *(f"{system}, {what}" for what in ("requests/s", "p99 ms", "CPU µs", "MB")
                           for system in SYSTEMS)]  # fmt: skip
    rows = []
    for name in dict.fromkeys(key[0] for key in found):
        places = sorted({point for curve, point, _ in found if curve == name})
        for point in places:
            cells = []
            for field, scale in (("requests_s", 1), ("p99_ms", 1), ("cpu_us", 1), ("memory", 1e6)):
                for system in SYSTEMS:
                    value = median(found.get((name, point, system), []), field)
                    cells.append("–" if math.isnan(value) else tables.number(value / scale))
            rows.append([CURVES[name].title, f"{point:,}", *cells])
        slopes = []
        for field in ("cpu_us", "memory"):
            for system in SYSTEMS:
                known = [point for point in places if found.get((name, point, system))]
                values = [median(found[name, point, system], field) for point in known]
                slopes.append(f"{exponent(known, values):.2f}")
        rows.append([CURVES[name].title, "exponent", "", "", "", "", *slopes])
    return tables.render(head, rows, markdown=markdown, left=2)


def draw(found: Found, path: Path) -> None:
    """A picture with a curve for each system: processor time of a request, both axes in powers."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(key[0] for key in found))
    figure, row = pyplot.subplots(
        1, len(names), figsize=(4 * len(names), 3.4), layout="constrained", squeeze=False
    )
    for axes, name in zip(row[0], names, strict=True):
        for system in SYSTEMS:
            places = sorted(p for curve, p, one in found if (curve, one) == (name, system))
            values = [median(found[name, point, system], "cpu_us") for point in places]
            axes.plot(places, values, marker="o", label=system)
        axes.set(xscale="log", yscale="log", xlabel=CURVES[name].title, ylabel="CPU µs a request")
        axes.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.curves", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--curves", nargs="+", default=["*"], help="shell patterns")
    parser.add_argument("--full", action="store_true", help="the largest points, too")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--tree", type=Path, help="the appliance's sources, when not these")
    parser.add_argument("--chart", type=Path, help="an SVG to write")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    names = [name for name in CURVES if any(fnmatch(name, one) for one in options.curves)]
    if not names:
        parser.error(f"no such curve; there are {', '.join(CURVES)}")
    kafka.fetch()
    byte_compile(*([options.tree] if options.tree else []))
    found = measure(names, options.full, options.repeat, options.seconds, options.tree)
    print(f"{machine.state()}; medians of {options.repeat}\n")
    print(report(found, options.markdown))
    if options.chart:
        draw(found, options.chart)


if __name__ == "__main__":
    main()
