"""Loads that write and read at once: produce with consume, catching up behind a writer, fan-out."""

import time
from dataclasses import dataclass

from benchmarks.compare import check, java_loads
from benchmarks.compare.java_loads import Producing, consumed, produced
from benchmarks.compare.measure import Effort
from benchmarks.compare.systems import System
from benchmarks.compare.tools import finish

RATE_MB_S = 50


@dataclass(frozen=True)
class Both:
    """producer-perf and consumers on one topic at once; counted from first record to the end."""

    producing: Producing
    consumers: int = 1

    @property
    def title(self) -> str:
        return f"{self.producing.title} and {self.consumers} consumer-perf at once"

    def prepare(self, system: System, effort: Effort) -> None:
        pass

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        records, topic = effort.count(self.producing.records), self.producing.topic(system)
        partitions = self.producing.partitions
        try:
            readers = [java_loads.consume(system, topic, records) for _ in range(self.consumers)]
            writer = self.producing.begin(system, topic, records)
            while writer.poll() is None and not _begun(system, topic, partitions):
                time.sleep(0.02)
            begun = time.monotonic()
            wrote = produced(finish(writer))
            read = [consumed(finish(reader), records) for reader in readers]
            passed = time.monotonic() - begun
            check.whole(system.peer, topic, partitions, records)
        finally:
            system.peer.delete(topic)
        moved = records * self.producing.size
        speeds = [one["mb_s"] for one in read]
        return {
            "mb_s": moved / passed / 1e6,
            "records_s": wrote["records_s"],
            "p99_ms": wrote["p99_ms"],
            "fairness": min(speeds) / max(speeds),
            "bytes": float(moved * (1 + self.consumers)),
        }


def _begun(system: System, topic: str, partitions: int) -> bool:
    return any(check.end_offset(system.peer, topic, number) for number in range(partitions))


@dataclass(frozen=True)
class CatchingUp:
    """A reader starts at offset 0 behind a cold backlog while a writer goes on at a fixed rate."""

    megabytes: int = 4000
    size: int = 1000

    @property
    def title(self) -> str:
        return f"a cold backlog of {self.megabytes:,} MB behind a writer of {RATE_MB_S} MB/s"

    def prepare(self, system: System, effort: Effort) -> None:
        backlog = int(self.megabytes * effort.share)
        topic, records = java_loads.fill(system.peer, self.size, 1, backlog)
        system.filled["backlog"] = (topic, records)
        java_loads.drop_caches()

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        filled = system.filled.pop("backlog")
        assert isinstance(filled, tuple)
        topic, records = filled
        rate = RATE_MB_S * 1_000_000 // self.size
        count = int(rate * max(5.0, 3 * effort.seconds))
        writing = Producing(self.size, count, partitions=1, throughput=rate)
        try:
            writer = writing.begin(system, topic, count)
            reader = java_loads.consume(system, topic, records)
            read, wrote = consumed(finish(reader), records), produced(finish(writer))
            check.whole(system.peer, topic, 1, records + count)
        finally:
            system.peer.delete(topic)
        return {
            "read_mb_s": read["mb_s"],
            "p99_ms": wrote["p99_ms"],
            "max_ms": wrote["max_ms"],
            "mb_s": wrote["mb_s"],
            "bytes": float((records + count) * self.size),
        }
