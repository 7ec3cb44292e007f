"""Loads by Apache Kafka's own tools: producer and consumer performance, end-to-end latency.

Their output is read for the figures; what they produced is counted and read back afterwards.
"""

import os
import re
import subprocess
from dataclasses import dataclass

from benchmarks import batches, kafka
from benchmarks.compare import check, tools
from benchmarks.compare.measure import Effort, size_text
from benchmarks.compare.systems import NotObtainable, System
from benchmarks.compare.tools import finish
from benchmarks.peer import Peer, WrongAnswer
from benchmarks.produce import Flow, ProduceRow

TOOLS = "org.apache.kafka.tools."
MIB = 1.048576
_PRODUCED = re.compile(
    r"([\d.]+) records/sec \(([\d.]+) MB/sec\), ([\d.]+) ms avg latency, ([\d.]+) ms max latency, "
    r"(\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th, (\d+) ms 99.9th"
)


def begin(tool: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a tool with the heap that Kafka's own scripts give it."""
    return tools.begin(kafka.java(TOOLS + tool, *arguments, heap="512m"))


@dataclass(frozen=True)
class Producing:
    """kafka-producer-perf-test as fast as it can. records: in a full run."""

    size: int
    records: int
    acks: str = "1"
    codec: str = "none"
    partitions: int = 6
    linger_ms: int = 5
    batch_bytes: int = 65_536
    throughput: int = -1

    @property
    def title(self) -> str:
        codec = "" if self.codec == "none" else f", {self.codec}"
        return (
            f"producer-perf {size_text(self.size)}{codec}, acks={self.acks}, {self.partitions} p."
        )

    def prepare(self, system: System, effort: Effort) -> None:
        pass

    def begin(self, system: System, topic: str, records: int) -> subprocess.Popen[str]:
        properties = {
            "bootstrap.servers": system.bootstrap,
            "acks": self.acks,
            "compression.type": self.codec,
            "linger.ms": str(self.linger_ms),
            "batch.size": str(max(self.batch_bytes, self.size + 1024)),
            "buffer.memory": str(64 << 20),
            "max.request.size": str(2 << 20),
            "enable.idempotence": "true" if self.acks == "all" else "false",
        }
        return begin(
            "ProducerPerformance", "--topic", topic, "--num-records", str(records),
            "--record-size", str(self.size), "--throughput", str(self.throughput),
            "--command-property", *(f"{key}={value}" for key, value in properties.items()),
        )  # fmt: skip

    def topic(self, system: System) -> str:
        configs = {"file.delete.delay.ms": "0", "max.message.bytes": str(2 << 20)}
        return system.peer.create(self.partitions, configs)

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        records, topic = effort.count(self.records), self.topic(system)
        try:
            found = produced(finish(self.begin(system, topic, records)))
            if self.acks != "0":
                check.whole(system.peer, topic, self.partitions, records)
        finally:
            system.peer.delete(topic)
        return found | {"bytes": float(records * self.size)}


def produced(said: str) -> dict[str, float]:
    """The last line of producer-perf. Raises WrongAnswer when it is not there."""
    lines = _PRODUCED.findall(said)
    if not lines:
        raise WrongAnswer(f"no figures in: {said[-300:]}")
    rate, speed, average, most, p50, p99, p999 = map(float, lines[-1])
    names = ("records_s", "mb_s", "avg_ms", "max_ms", "p50_ms", "p99_ms", "p999_ms")
    return dict(zip(names, (rate, speed * MIB, average, most, p50, p99, p999), strict=True))


def fill(peer: Peer, size: int, partitions: int, megabytes: int) -> tuple[str, int]:
    """A topic of batches of about 16 KB. Returns its name and the records it holds."""
    each = max(1, 16_000 // size)
    row = ProduceRow(each, size, 5)
    batch = batches.uniform(each, size, 1_700_000_000_000)
    topic = peer.create(partitions, {"file.delete.delay.ms": "0", "retention.ms": "-1"})
    count = max(row.in_flight, megabytes * 1_000_000 // partitions // (each * size))
    for partition in range(partitions):
        with peer.connect() as wire:
            flow = Flow(wire, row, topic, partition, batch)
            flow.send(row.in_flight)
            sent, done = row.in_flight, 0
            while done < count:
                got = flow.receive()
                done += got
                if more := min(got, count - sent):
                    flow.send(more)
                    sent += more
    return topic, count * each * partitions


@dataclass(frozen=True)
class Consuming:
    """kafka-consumer-perf-test over a filled topic; each consumer is a group of its own.

    cold: the page cache is dropped before (needs root).
    """

    size: int
    megabytes: int
    consumers: int = 1
    partitions: int = 6
    cold: bool = False

    @property
    def title(self) -> str:
        state = "cold" if self.cold else "hot"
        return f"consumer-perf {size_text(self.size)}, {self.consumers} consumers, {state}"

    def key(self, effort: Effort) -> tuple[object, ...]:
        return ("filled", self.size, self.partitions, int(self.megabytes * effort.share))

    def prepare(self, system: System, effort: Effort) -> None:
        key = self.key(effort)
        if key not in system.filled:
            system.filled[key] = fill(system.peer, self.size, self.partitions, int(str(key[-1])))
        if self.cold:
            drop_caches()

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        filled = system.filled[self.key(effort)]
        assert isinstance(filled, tuple)
        topic, records = filled
        running = [consume(system, topic, records) for _ in range(self.consumers)]
        found = [consumed(finish(process), records) for process in running]
        speeds = [one["mb_s"] for one in found]
        return {
            "mb_s": sum(speeds),
            "records_s": sum(one["records_s"] for one in found),
            "fairness": min(speeds) / max(speeds),
            "bytes": float(records * self.size * self.consumers),
        }


def drop_caches() -> None:
    """Write back and forget the page cache. Raises NotObtainable without the right to."""
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("1")
    except OSError as error:
        raise NotObtainable(f"dropping the page cache: {error}") from None


def consume(system: System, topic: str, records: int) -> subprocess.Popen[str]:
    return begin(
        "ConsumerPerformance", "--bootstrap-server", system.bootstrap, "--topic", topic,
        "--num-records", str(records), "--hide-header", "--timeout", "30000",
    )  # fmt: skip


def consumed(said: str, records: int) -> dict[str, float]:
    """The line of consumer-perf. Raises WrongAnswer when it has not read `records`."""
    rows = [line.split(", ") for line in said.splitlines() if line.count(", ") >= 9]
    if not rows:
        raise WrongAnswer(f"no figures in: {said[-300:]}")
    cells = rows[-1]
    if int(cells[4]) < records:
        raise WrongAnswer(f"consumed {int(cells[4]):,} records of {records:,}")
    return {"mb_s": float(cells[8]) * MIB, "records_s": float(cells[9])}


@dataclass(frozen=True)
class EndToEnd:
    """kafka-e2e-latency: one record at a time, there and back. A closed loop: no tail to trust."""

    records: int = 10_000
    size: int = 100
    acks: str = "1"

    @property
    def title(self) -> str:
        return f"kafka-e2e-latency {size_text(self.size)}, acks={self.acks}"

    def prepare(self, system: System, effort: Effort) -> None:
        pass

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        topic, count = system.peer.create(), effort.count(self.records)
        arguments = (system.bootstrap, topic, str(count), self.acks, str(self.size))
        try:
            said = finish(begin("EndToEndLatency", *arguments))
            check.whole(system.peer, topic, 1, count)
        finally:
            system.peer.delete(topic)
        average = re.search(r"Avg latency: ([\d.]+)", said)
        tail = re.search(r"50th = (\d+), 99th = (\d+), 99.9th = (\d+)", said)
        if average is None or tail is None:
            raise WrongAnswer(f"no figures in: {said[-300:]}")
        p50, p99, p999 = map(float, tail.groups())
        return {"avg_ms": float(average[1]), "p50_ms": p50, "p99_ms": p99, "p999_ms": p999}
