"""Every row of the comparison, declared. A new row is one more line here.

kind says who provides the broker: "load" runs on two brokers that run side by side, "life" starts
and stops its own, "limit" needs none. short: the row is part of the short mode too.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from itertools import product

from benchmarks.compare.java_loads import Consuming, EndToEnd, Producing
from benchmarks.compare.latency_loads import OpenLoop
from benchmarks.compare.life_loads import Idling, Limit, Recovering, Starting
from benchmarks.compare.raw_loads import Connections, Raw
from benchmarks.compare.rdkafka import Performance
from benchmarks.compare.together_loads import Both, CatchingUp
from benchmarks.fetch import FetchRow
from benchmarks.produce import ProduceRow

CLIENTS = Producing | Consuming | EndToEnd | OpenLoop | Performance | Both | CatchingUp
LOADS = Raw | Connections | CLIENTS
LIVES = Starting | Recovering | Idling


@dataclass(frozen=True)
class Row:
    """One line of the table. headline: the figure whose ratio decides."""

    name: str
    workload: str
    load: LOADS | LIVES | Limit
    headline: str
    level: str = "D1"
    short: bool = False

    @property
    def title(self) -> str:
        return self.load.title

    @property
    def kind(self) -> str:
        if isinstance(self.load, LIVES):
            return "life"
        return "limit" if isinstance(self.load, Limit) else "load"

    @property
    def settings(self) -> dict[str, object]:
        """What the load does, as the report prints it."""
        return asdict(self.load)


def limits() -> Iterator[Row]:
    yield Row("limit-memcpy", "limits", Limit("memcpy", 256 << 20), "mb_s", "-", True)
    for size in (200, 16 << 10, 64 << 10, 1 << 20):
        load = Limit("fdatasync", size)
        yield Row(f"limit-sync-{size}", "limits", load, "requests_s", "-", True)


def lives() -> Iterator[Row]:
    yield Row("w14", "W14", Recovering(), "all_ready_s")
    yield Row("w14-small", "W14", Recovering(2000, 100), "all_ready_s", short=True)
    for partitions in (0, 1000, 10_000):
        load = Starting(partitions)
        yield Row(f"w15-{partitions}", "W15", load, "first_ack_s", short=not partitions)
    yield Row("w16", "W16", Idling(), "pss_mb", short=True)
    yield Row("w16-1000", "W16", Idling(1000), "pss_mb")


SHAPES = ((1, 100, 1, 1), (1, 100, 5, 1), (16, 1000, 5, 1), (64, 1000, 5, 1), (1000, 1000, 5, 1),
          (1, 100, 1, 50))  # fmt: skip
"""Records per request, their size, requests in flight, connections."""


def raws() -> Iterator[Row]:
    """The raw protocol: acks=1 with D1, acks=all with D2."""
    for (level, acks), (records, size, flight, links) in product((("D1", 1), ("D2", -1)), SHAPES):
        load = Raw(ProduceRow(records, size, flight, acks, connections=links))
        name = f"raw-{level.lower()}-{records}x{size}-{flight}"
        name += f"c{links}" if links > 1 else ""
        yield Row(name, "raw", load, "requests_s", level, True)
    for size in (64 << 10, 1 << 20, 8 << 20):
        load = Raw(FetchRow(size))
        yield Row(f"raw-fetch-{size >> 10}k", "raw", load, "requests_s", short=size < 8 << 20)
    session = Raw(FetchRow(64 << 10, version=12, partitions=100))
    yield Row("raw-fetch-s100", "raw", session, "requests_s", short=True)
    yield Row("w17", "W17", Connections(), "p99_ms", short=True)


def most(size: int) -> int:
    """Records of a full run: a few seconds' worth at what such sizes reach here."""
    return max(500, min(3_000_000, 600_000_000 // size))


def producers() -> Iterator[Row]:
    for size, codec in product((10, 100, 1000, 10_000, 100_000), ("none", "lz4")):
        load = Producing(size, most(size), codec=codec)
        yield Row(f"w1-{size}-{codec}", "W1", load, "mb_s")
    for size, acks, partitions in product((100, 1000), ("1", "all"), (1, 6)):
        load = Producing(size, most(size), acks, partitions=partitions)
        short = (size, acks) != (100, "all")
        yield Row(f"w2-goal-{size}-{acks}-{partitions}", "W2", load, "mb_s", short=short)
    load = Producing(1000, most(1000), "all")
    yield Row("w2-goal-1000-all-6-d2", "W2", load, "mb_s", "D2", True)
    sizes = (10, 100, 1000, 10_000, 100_000, 1_000_000)
    for size, codec, code in product(sizes, ("none", "lz4", "zstd"), (0, 1, -1)):
        by = Performance(size, most(size), acks=code, codec=codec)
        short = (size, codec, code) == (1000, "none", -1)
        yield Row(f"w2-{size}-{codec}-{code}", "W2", by, "mb_s", short=short)
    for partitions in (1, 6, 100, 1000):
        load = Producing(1000, most(1000), partitions=partitions)
        yield Row(f"w3-{partitions}", "W3", load, "mb_s", short=partitions == 100)


def clients() -> Iterator[Row]:
    for writers, readers in ((1, 1), (10, 1), (1, 10), (10, 10), (50, 1)):
        load = Performance(1000, most(1000) // 2, writers, readers)
        yield Row(f"w4-{writers}p{readers}c", "W4", load, "mb_s")
    for writers in (10, 50):
        load = Performance(100, 200_000, writers, acks=-1, linger_ms=0)
        yield Row(f"w4-linger0-{writers}p", "W4", load, "records_s")
    for readers, cold in product((1, 3), (False, True)):
        name = f"w5-{'cold' if cold else 'hot'}-{readers}"
        yield Row(name, "W5", Consuming(100, 2000, readers, cold=cold), "mb_s", short=not cold)
    yield Row("w5-hot-1k", "W5", Consuming(1000, 4000), "mb_s")
    for size, name in ((1000, "w9-1k"), (100, "w9-100")):
        yield Row(name, "W9", Both(Producing(size, most(size))), "mb_s", short=size == 1000)
    yield Row("w10", "W10", CatchingUp(), "read_mb_s")
    for groups in (1, 5, 20):
        load = Performance(1000, 100_000, consumers=groups)
        yield Row(f"w11-{groups}", "W11", load, "mb_s")


def latencies() -> Iterator[Row]:
    for rate, level in product((100, 1000, 10_000, 50_000, 0), ("D1", "D2")):
        short = rate in (1000, 10_000) and level == "D1"
        name = f"w7-{rate or 'most'}-{level.lower()}"
        yield Row(name, "W7", OpenLoop(rate), "p99_ms", level, short)
    yield Row("w7-1000-linger5", "W7", OpenLoop(1000, linger_ms=5), "p99_ms")
    for acks, level in (("1", "D1"), ("all", "D1"), ("all", "D2")):
        short = (acks, level) == ("all", "D1")
        yield Row(f"w8-{acks}-{level.lower()}", "W8", EndToEnd(acks=acks), "avg_ms", level, short)


GROUPS = (limits, lives, raws, producers, clients, latencies)
ROWS = {row.name: row for group in GROUPS for row in group()}


def choose(mode: str, patterns: list[str]) -> list[Row]:
    """The rows of a mode, or those that match a shell pattern, in the table's order."""
    if patterns:
        return [row for row in ROWS.values() if any(fnmatch(row.name, one) for one in patterns)]
    return [row for row in ROWS.values() if mode == "full" or row.short]
