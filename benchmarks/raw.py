"""The raw-protocol rows and the alternation: every row runs on every peer in turn, again and again.

Only figures of one run may be compared, so a row's repetitions go A, B, bare, A, B, bare …, with
the page cache written back in between. Called by `python -m benchmarks`.
"""

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from benchmarks import bare, fetch, produce, tables
from benchmarks.fetch import FetchRow
from benchmarks.peer import Peer, WrongAnswer
from benchmarks.produce import ProduceRow, Result

Row = ProduceRow | FetchRow
ROWS: dict[str, Row] = {
    "p1x100-1": ProduceRow(1, 100, 1),
    "p1x100-5": ProduceRow(1, 100, 5),
    "p10x100-5": ProduceRow(10, 100, 5),
    "p16x1k-5": ProduceRow(16, 1000, 5),
    "p64x1k-5": ProduceRow(64, 1000, 5),
    "p1000x1k-5": ProduceRow(1000, 1000, 5),
    "p1x100-5c8": ProduceRow(1, 100, 5, connections=8),
    "p1x100-5v9": ProduceRow(1, 100, 5, version=9),
    "d1x100-1": ProduceRow(1, 100, 1, acks=-1),
    "d1x100-5": ProduceRow(1, 100, 5, acks=-1),
    "d1x100-5c8": ProduceRow(1, 100, 5, acks=-1, connections=8),
    "d1x100-1c50": ProduceRow(1, 100, 1, acks=-1, connections=50),
    "d16x1k-5": ProduceRow(16, 1000, 5, acks=-1),
    "d64x1k-5": ProduceRow(64, 1000, 5, acks=-1),
    "d1000x1k-5": ProduceRow(1000, 1000, 5, acks=-1),
    "f64k": FetchRow(64 << 10),
    "f1m": FetchRow(1 << 20),
    "f8m": FetchRow(8 << 20),
    "f64kv12": FetchRow(64 << 10, version=12),
    "f64ks100": FetchRow(64 << 10, version=12, partitions=100),
}
Filled = dict[tuple[int, int], fetch.Data]
"""By peer and number of partitions."""
DURABLE_SIZES = (200, 16 << 10, 64 << 10, 1 << 20)


@dataclass
class Measured:
    """All results of one row on one peer."""

    row: str
    peer: Peer
    results: list[Result] = field(default_factory=list)
    failure: str = ""

    def column(self, name: str) -> list[float]:
        values = [getattr(result, name) for result in self.results]
        return [value for value in values if value is not None]


def choose(patterns: Sequence[str]) -> list[str]:
    """Names of rows that match one of the shell patterns, in the order of the table."""
    return [name for name in ROWS if any(fnmatch(name, pattern) for pattern in patterns)]


def measure(
    peers: Sequence[Peer], names: Sequence[str], seconds: float, repeat: int
) -> list[list[Measured]]:
    """One list per row, one entry per peer. A peer that answers wrongly keeps the reason."""
    table = []
    filled: Filled = {}
    for name in names:
        row = ROWS[name]
        cells = [Measured(name, peer) for peer in peers if fits(peer, row)]
        for _ in range(repeat):
            for cell in cells:
                if not cell.failure:
                    _once(cell, row, seconds, filled)
        table.append(cells)
    for peer in peers:
        for (owner, _), data in filled.items():
            if owner == id(peer):
                peer.delete(data.topic)
    return table


def warm(peers: Sequence[Peer], seconds: float) -> None:
    """Load each peer a while before anything counts: a JIT has to see the code first."""
    for peer in peers:
        for row in (ProduceRow(1, 100, 5), ProduceRow(64, 1000, 5)):
            with contextlib.suppress(WrongAnswer, OSError):  # the rows themselves will say so
                produce.run(peer, row, seconds / 2)


def fits(peer: Peer, row: Row) -> bool:
    """The bare loop knows one partition and the classic encodings only."""
    if not peer.bare:
        return True
    if isinstance(row, FetchRow):
        return row.version < 12 and "touched" not in peer.name
    return row.version < 9 and row.connections == 1


def _once(cell: Measured, row: Row, seconds: float, filled: Filled) -> None:
    os.sync()
    print(f"  {cell.row} on {cell.peer.name} …", file=sys.stderr, flush=True)
    try:
        if isinstance(row, ProduceRow):
            if cell.peer.bare:
                filled.pop((id(cell.peer), 1), None)
            cell.results.append(produce.run(cell.peer, row, seconds))
            return
        key = (id(cell.peer), row.partitions)
        if key not in filled:
            filled[key] = fetch.fill(cell.peer, partitions=row.partitions)
        cell.results.append(fetch.run(cell.peer, row, filled[key], seconds))
    except (WrongAnswer, OSError) as error:
        cell.failure = str(error) or type(error).__name__
        time.sleep(0.5)  # a peer that broke gets a moment before the next row


def report(table: list[list[Measured]], *, markdown: bool) -> str:
    """One line per row and peer: rates, CPU per request, and ratios to the first peer."""
    head = [
        "row",
        "peer",
        "requests/s",
        "MB/s",
        "broker CPU µs/request",
        "requests vs first",
        "CPU vs first",
    ]
    lines: list[list[str]] = []
    failures: list[str] = []
    for cells in table:
        first = cells[0]
        for cell in cells:
            title = ROWS[cell.row].title if cell is first else ""
            if cell.failure:
                lines.append([title, cell.peer.name, f"failed: {cell.failure}", "", "", "", ""])
                continue
            rates, cpu = cell.column("requests_s"), cell.column("cpu_us")
            lines.append([
                title, cell.peer.name, tables.spread(rates), tables.spread(cell.column("mb_s")),
                tables.spread(cpu), tables.ratio(rates, first.column("requests_s")),
                tables.ratio(cpu, first.column("cpu_us")),
            ])  # fmt: skip
    return "\n".join([tables.render(head, lines, markdown=markdown, left=2), *failures])


def durable(folder: Path, seconds: float, repeat: int, *, markdown: bool) -> str:
    """The write + fdatasync loop of this machine."""
    lines = []
    for size in DURABLE_SIZES:
        rates = [bare.synced_writes(folder, size, seconds) for _ in range(repeat)]
        speeds = [rate * size / 1e6 for rate in rates]
        lines.append([f"{size:,} B", tables.spread(rates), tables.spread(speeds)])
    return tables.render(["write + fdatasync", "per second", "MB/s"], lines, markdown=markdown)
