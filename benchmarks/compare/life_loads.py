"""Loads that start brokers of their own: start, recovery after kill -9, doing nothing.

Each is given a system that does not run yet and leaves it stopped.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import bare, batches, procstat, requests
from benchmarks.compare import check, java_loads
from benchmarks.compare.measure import Effort
from benchmarks.compare.systems import START_LIMIT_S, System
from benchmarks.peer import Wire, WrongAnswer

PER_TOPIC = 500
SETTLE_S = 5.0


def first_ack(system: System, begun: float, topic: str) -> float:
    """Seconds from `begun` until one more record for partition 0 is acknowledged, trying without
    pause. Creates the topic where it is missing."""
    batch = batches.uniform(1, 100, 1_700_000_000_000)
    request = requests.produce(topic, 0, batch, -1, 1)
    shape = requests.produce_shape(topic, 7)
    while True:
        if not system.alive or time.monotonic() - begun > START_LIMIT_S:
            raise WrongAnswer("no record was acknowledged after a start")
        try:
            with Wire(("127.0.0.1", system.port)) as wire:
                wire.call(requests.create_topic(topic, 1, {}))
                while shape.fields.unpack_from(wire.call(request), shape.at - 8)[0]:
                    time.sleep(0.002)
                return time.monotonic() - begun
        except (OSError, WrongAnswer):
            time.sleep(0.002)


def create_many(system: System, partitions: int) -> list[tuple[str, int]]:
    """Topics of at most PER_TOPIC partitions that make up `partitions`."""
    made = []
    while partitions:
        count = min(PER_TOPIC, partitions)
        made.append((system.peer.create(count, {}), count))
        partitions -= count
    return made


@dataclass(frozen=True)
class Starting:
    """From exec to the first acknowledged record, with so many partitions there already."""

    partitions: int = 0

    @property
    def title(self) -> str:
        return f"exec to first acknowledged record, {self.partitions:,} partitions"

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        if self.partitions:
            system.start()
            create_many(system, self.partitions)
            first_ack(system, time.monotonic(), "first")
            system.stop()
        else:
            system.prepare()
        os.sync()
        acked = first_ack(system, system.launch(), "first")
        pss = procstat.memory(system.pid).pss
        at = time.monotonic()
        system.stop()
        return {"first_ack_s": acked, "stop_s": time.monotonic() - at, "pss_mb": pss / 1e6}


@dataclass(frozen=True)
class Recovering:
    """kill -9 of everything under load, then from exec until records are acknowledged again, and
    until every partition serves. What was acknowledged before is there."""

    megabytes: int = 10_000
    partitions: int = 1000

    @property
    def title(self) -> str:
        return f"recovery after kill -9, {self.megabytes:,} MB, {self.partitions:,} partitions"

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        partitions = max(50, int(self.partitions * min(1.0, effort.share * 4)))
        system.start()
        idle = create_many(system, partitions - 100) if partitions > 100 else []
        first_ack(system, time.monotonic(), "first")
        size = int(self.megabytes * effort.share)
        topic, records = java_loads.fill(system.peer, 1000, min(100, partitions), size)
        system.kill()
        begun = system.launch()
        acked = first_ack(system, begun, "first")
        for name, count in [*idle, (topic, min(100, partitions))]:
            system.peer.wait_served(name, count, START_LIMIT_S)
        ready = time.monotonic() - begun
        check.whole(system.peer, topic, min(100, partitions), records)
        system.stop()
        return {"first_ack_s": acked, "all_ready_s": ready}


@dataclass(frozen=True)
class Idling:
    """CPU, wake-ups and memory of a broker that nobody uses, once it has settled."""

    partitions: int = 0

    @property
    def title(self) -> str:
        return f"idle, {self.partitions:,} partitions" if self.partitions else "idle"

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        system.start()
        if self.partitions:
            create_many(system, self.partitions)
        first_ack(system, time.monotonic(), "first")
        time.sleep(SETTLE_S)
        seconds = max(5.0, effort.seconds * 4)
        cpu, woken = procstat.cpu_seconds(system.pid), procstat.wakeups(system.pid)
        time.sleep(seconds)
        cpu, woken = procstat.cpu_seconds(system.pid) - cpu, procstat.wakeups(system.pid) - woken
        memory = procstat.memory(system.pid)
        system.stop()
        return {"cpu_percent": cpu / seconds * 100, "wakeups_s": woken / seconds,
                "pss_mb": memory.pss / 1e6}  # fmt: skip


@dataclass(frozen=True)
class Limit:
    """What the machine gives without any broker: memcpy, or write + fdatasync of some size."""

    kind: str
    size: int

    @property
    def title(self) -> str:
        return f"{self.kind} of {self.size:,} B"

    def alone(self, folder: Path, effort: Effort) -> dict[str, float]:
        seconds = min(2.0, effort.seconds)
        if self.kind == "fdatasync":
            rate = bare.synced_writes(folder, self.size, seconds)
        else:
            source, target = memoryview(bytes(self.size)), memoryview(bytearray(self.size))
            done, begun = 0, time.perf_counter()
            while time.perf_counter() - begun < seconds:
                target[:] = source
                done += 1
            rate = done / (time.perf_counter() - begun)
        return {"requests_s": rate, "mb_s": rate * self.size / 1e6}
