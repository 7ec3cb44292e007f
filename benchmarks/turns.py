"""For how long does one chore hold up everybody else?

    python -m benchmarks.turns [--chores 'delete*' …] [--kafka] [--scale 1.0] [--markdown]

While one client does something large (a topic with thousands of partitions, deleted; DeleteRecords
on all of them; a restart over one large segment), another one writes a small record to another
topic every 2 ms with acks=1; its longest wait for an answer is printed, from the moment the record
was due. Of the appliance also the longest turn of each process's loop, from its process table,
which is in shared memory, so this one imports the appliance. --kafka: Apache Kafka in the same run.
--scale: smaller or larger numbers of partitions and bytes.
"""

import argparse
import fnmatch
import mmap
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack

from appliance.observer.door import segment
from appliance.ring.tables import PAGE, Tables, read_head
from benchmarks import batches, kafka, requests, tables
from benchmarks.peer import Peer, Wire, WrongAnswer

EVERY_S = 0.002
SETTLE_S = 3.0
OTHER = "other"
DELETE_RECORDS = 21
FILES = 1 << 19


@dataclass
class Result:
    """gap_s: longest wait for an answer on the other topic. turns: process → seconds."""

    took_s: float = 0.0
    gap_s: float = 0.0
    turns: dict[str, float] = field(default_factory=dict)


class System:
    """One broker in a folder, started and stopped at will."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = kafka.free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def peer(self) -> Peer:
        return Peer(self.name, ("127.0.0.1", self.port), None)

    def wait(self) -> None:
        end = time.monotonic() + 300
        while time.monotonic() < end:
            with suppress(OSError, WrongAnswer), self.peer.connect() as wire:
                wire.call(requests.api_versions())
                return
            time.sleep(0.01)
        raise SystemExit(f"{self.name} did not start")

    def stop(self, number: int = signal.SIGTERM) -> float:
        began = time.monotonic()
        assert self.process is not None
        if number == signal.SIGKILL:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        self.process.wait()
        return time.monotonic() - began

    def start(self, snapshot_bytes: int = 20 << 20) -> None:
        raise NotImplementedError

    def forget(self) -> None:
        """Begin to look for the longest turns anew."""

    def turns(self) -> dict[str, float]:
        return {}

    def forget_recovery_points(self) -> None:
        for path in self.folder.rglob("recovery-point-offset-checkpoint"):
            path.unlink()


class Penstock(System):
    name = "penstock"

    def start(self, snapshot_bytes: int = 20 << 20) -> None:
        arguments = ["up", "--data", str(self.folder)]
        arguments += ["--listen", f"127.0.0.1:{self.port}"]
        arguments += ["-o", "penstock.arena.bytes=67108864", "-o", "penstock.partitions.max=131072"]
        arguments += ["-o", "penstock.net.processes=1", "-o", "penstock.io.processes=1"]
        setting = "metadata.log.max.record.bytes.between.snapshots"
        arguments += ["-o", f"{setting}={snapshot_bytes}"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "console", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=open(self.folder.with_suffix(".log"), "ab"),  # noqa: SIM115
            start_new_session=True,
        )
        self.wait()
        self.table = _tables(self.folder).processes

    def forget(self) -> None:
        for peer in self.table.peers:
            self.table.forget_turns(peer)

    def turns(self) -> dict[str, float]:
        return {str(p): self.table.longest_turn(p) / 1e9 for p in self.table.peers}


def _tables(folder: Path) -> Tables:
    """Those of the appliance that runs there, and writable: `forget` is for who measures."""
    with open(segment(str(folder)), "r+b") as file:
        head = read_head(memoryview(mmap.mmap(file.fileno(), PAGE)))
        return Tables(memoryview(mmap.mmap(file.fileno(), head.size)), head.shape)


class Kafka(System):
    name = "kafka"

    def start(self, snapshot_bytes: int = 20 << 20) -> None:
        broker = kafka.Kafka(self.folder, self.port)
        if not (self.folder / "server.properties").exists():
            broker.format()
        self.process = subprocess.Popen(
            kafka.java("kafka.Kafka", str(self.folder / "server.properties"), heap="1g"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.wait()


# The client that is held up -----------------------------------------------------------------------


def _probe(address: tuple[str, int], over, worst) -> None:  # type: ignore[no-untyped-def]
    """Write a record every 2 ms and note the longest wait, from when it was due."""
    batch = batches.uniform(1, 100, time.time_ns() // 1_000_000)
    request = requests.produce(OTHER, 0, batch, 1, 1)
    with Wire(address) as wire:
        due = time.monotonic()
        while not over.is_set():
            wire.call(request)
            now = time.monotonic()
            worst.value = max(worst.value, now - due)
            due += EVERY_S
            if due > now:
                time.sleep(due - now)
            else:
                due = now  # one wait is one wait, however many records would have been due


@contextmanager
def held_up(system: System, result: Result) -> Iterator[None]:
    """What happens inside, and for a while after it, is what the other client has to bear."""
    context = multiprocessing.get_context("fork")
    over, worst = context.Event(), context.Value("d", 0.0)
    probe = context.Process(target=_probe, args=(system.peer.address, over, worst))
    probe.start()
    time.sleep(1)
    worst.value = 0.0
    system.forget()
    began = time.monotonic()
    try:
        yield
        result.took_s = time.monotonic() - began
        time.sleep(SETTLE_S)
    finally:
        over.set()
        probe.join()  # its last answer may still be to come
        result.gap_s = worst.value
        result.turns = system.turns()


# Chores -------------------------------------------------------------------------------------------


def _partitions(topic: str, count: int, offset: int) -> bytes:
    body = pack(">i", 1) + requests.string(topic) + pack(">i", count)
    body += b"".join(pack(">iq", index, offset) for index in range(count))
    return requests.frame(DELETE_RECORDS, 0, 1, body + pack(">i", 30_000))


def _fill(peer: Peer, topic: str, partitions: int, size: int, times: int = 1) -> None:
    batch = batches.uniform(max(1, size // 1000), min(size, 1000), time.time_ns() // 1_000_000)
    with peer.connect() as wire:
        for _ in range(times):
            for index in range(partitions):
                wire.call(requests.produce(topic, index, batch, 1, 1))


def create(system: System, scale: float) -> Result:
    result = Result()
    with held_up(system, result), system.peer.connect(1 << 24) as wire:
        wire.call(requests.create_topic("created", int(5000 * scale), {}))
    return result


def delete(system: System, scale: float) -> Result:
    result, count = Result(), int(2000 * scale)
    system.peer.create(count, name="deleted")
    _fill(system.peer, "deleted", count, 100)
    with held_up(system, result), system.peer.connect(1 << 24) as wire:
        wire.call(requests.delete_topic("deleted"))
    return result


def delete_records(system: System, scale: float) -> Result:
    result, count = Result(), int(1000 * scale)
    system.peer.create(count, name="emptied")
    _fill(system.peer, "emptied", count, 100)
    with held_up(system, result), system.peer.connect(1 << 24) as wire:
        wire.call(_partitions("emptied", count, -1))
    return result


def recover(system: System, scale: float) -> Result:
    """Nothing is known of one segment of 1 GB after a kill: every byte of it is read again."""
    result = Result()
    system.peer.create(1, name="large")
    _fill(system.peer, "large", 1, 1_000_000, int(1000 * scale))
    system.stop(signal.SIGKILL)
    system.forget_recovery_points()
    began = time.monotonic()
    system.start()
    system.peer.wait_served("large", 1, 300)
    result.took_s = time.monotonic() - began
    result.turns = system.turns()
    return result


def snapshot(system: System, scale: float) -> Result:
    """A snapshot of the metadata is due at the next start, over so many partitions."""
    result = Result()
    if isinstance(system, Kafka):
        return result  # it maps four files for each partition
    for number in range(int(100 * scale)):
        system.peer.create(1000, name=f"many-{number}")
    system.stop()
    system.start(snapshot_bytes=1000)
    with held_up(system, result):
        system.peer.create(1, name="one-more")
    return result


def end(system: System, scale: float) -> Result:
    """An orderly end with so many logs that were written to."""
    for number in range(int(10 * scale)):
        system.peer.create(1000, name=f"ending-{number}")
        _fill(system.peer, f"ending-{number}", 1000, 100)
    result = Result(took_s=system.stop())
    system.start()
    return result


CHORES: dict[str, Callable[[System, float], Result]] = {
    "create": create,
    "delete": delete,
    "delete-records": delete_records,
    "recover": recover,
    "snapshot": snapshot,
    "end": end,
}


def measure(kind: type[System], chore: str, scale: float, parent: Path) -> Result:
    folder = parent / f"{kind.name}-{chore}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    system = kind(folder)
    system.start()
    try:
        system.peer.create(1, name=OTHER)
        return CHORES[chore](system, scale)
    finally:
        with suppress(ProcessLookupError):
            system.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("--chores", nargs="*", default=["*"], help="names or shell patterns")
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka in turn")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, help="where the brokers write")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and stop what was started
    kinds: list[type[System]] = [Penstock]
    if options.kafka:
        kafka.fetch()
        kinds.append(Kafka)
    with suppress(ValueError, OSError):  # each log that is open takes a file
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    chores = [c for c in CHORES if any(fnmatch.fnmatch(c, p) for p in options.chores)]
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as parent:
        for chore in chores:
            for kind in kinds:
                result = measure(kind, chore, options.scale, Path(parent))
                turns = [f"{name} {took * 1e3:.0f}" for name, took in result.turns.items()]
                gap = f"{result.gap_s * 1e3:.0f}" if result.gap_s else ""
                rows.append([chore, kind.name, f"{result.took_s:.2f}", gap, ", ".join(turns)])
                print(*rows[-1], sep="\t", file=sys.stderr)
    head = ["chore", "broker", "took s", "longest gap ms", "longest turn ms"]
    print(tables.render(head, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
