"""`python -m tests.faults.system_calls`: one system call of one process of a running appliance
fails, again and again, by seed, while clients work.

A library that a compiler makes of `system_calls.c` is preloaded into the appliance; an order in
shared memory says which call of which process fails, the how manieth from now on, and with what
error; `short`: it does half of what it is asked. After each fault: the supervisor is the same, no
process has met an exception that nobody expected, each acknowledged record is there, everybody is
served again, and what clients were told are Kafka's error codes that mean it. A partition whose
file failed is offline until a start has verified it, so the appliance is started again then.

Ends with 0 when all held; 1: not so, with the seeds; 2: there is no compiler.
"""

import argparse
import contextlib
import errno
import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import procstat, requests
from benchmarks.batches import batch
from benchmarks.peer import WrongAnswer
from tests.broker_process import Broker

SOURCE = Path(__file__).with_suffix(".c")
CALLS = (
    "open", "read", "pread", "preadv", "write", "pwrite", "pwritev", "sendfile", "fstat", "stat",
    "statvfs", "fsync", "fdatasync", "rename", "unlink", "mkdir", "rmdir", "ftruncate",
    "fallocate", "opendir", "mmap", "accept", "epoll_wait", "epoll_ctl", "socket", "connect",
    "recv", "send", "sendmsg", "eventfd_write",
)  # fmt: skip
"""As `system_calls.c` numbers them."""
ERRORS = ("EIO", "EMFILE", "ENFILE", "ENOMEM", "EACCES", "ENOSPC", "EINTR", "short")
POSSIBLE = {"epoll_wait": ("EINTR",), "eventfd_write": ()}
"""Calls that the kernel refuses for no other reason, unless the process has no sound memory."""
_HEAD = struct.Struct("5i")
SERVED_S = 40
MEANS_IT = {
    5, 6, 7, 13, 14, 15, 16, 19, 20, 41, 56, 72, 3,
}  # fmt: skip
"""Codes with which a client tries again, and KAFKA_STORAGE_ERROR."""
PARTITIONS = 4


class Fault(NamedTuple):
    """What fails: a place in the appliance, a call, an error's name, and the how manieth call."""

    process: str
    call: str
    error: str
    after: int

    def __str__(self) -> str:
        return f"{self.process}: {self.call} number {self.after} {self.error}"


class Order:
    """The shared memory that says what fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(4096))
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)

    def give(self, pid: int, fault: Fault) -> None:
        code = -1 if fault.error == "short" else getattr(errno, fault.error)
        _HEAD.pack_into(self.memory, 0, 0, CALLS.index(fault.call), code, fault.after, 0)
        self.memory[0:4] = struct.pack("i", pid)

    def take_back(self) -> bool:
        """Whether the fault came about."""
        self.memory[0:4] = struct.pack("i", 0)
        return bool(_HEAD.unpack_from(self.memory)[4])

    def seen(self) -> dict[str, int]:
        """How often each call was made while there was an order."""
        return dict(zip(CALLS, struct.unpack_from(f"{len(CALLS)}i", self.memory, 20), strict=True))


def compiled(folder: Path) -> Path | None:
    """The library; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    made = folder / "system_calls.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-w", "-o", str(made), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return made


class Suffering(Broker):
    """An appliance with the library in all its processes."""

    def __init__(self, data: Path, library: Path, order: Order) -> None:
        settings = {
            "log.segment.bytes": "1048576",
            "penstock.metrics.listener": "127.0.0.1:0",
            "offsets.topic.num.partitions": "2",
            "log.retention.check.interval.ms": "1000",
        }
        super().__init__(data, settings)
        self._library, self._order = library, order

    def start(self, *, wait: bool = True) -> "Suffering":
        os.environ["LD_PRELOAD"] = str(self._library)
        os.environ["PENSTOCK_TEST_CALLS"] = str(self._order.path)
        try:
            return super().start(wait=wait)
        finally:
            del os.environ["LD_PRELOAD"], os.environ["PENSTOCK_TEST_CALLS"]

    def places(self) -> dict[str, int]:
        """Name of a process as ps shows it → its id."""
        found = {}
        for pid in procstat.tree(self.process.pid):
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            if name.startswith("penstock-"):
                found[name.removeprefix("penstock-")] = pid
        return found | {"supervisor": self.process.pid}


class Client:
    """Works with an appliance, and remembers what was acknowledged: (topic, partition) → offset →
    number in the value."""

    def __init__(self, broker: Broker, chance: random.Random) -> None:
        self.broker = broker
        self.chance = chance
        self.acknowledged: dict[tuple[str, int], dict[int, int]] = {}
        self.topic = ""
        self.number = 0
        self.told: Counter[int] = Counter()
        self.closed = 0

    def new_topic(self, number: int) -> None:
        self.topic = self.broker.peer.create(PARTITIONS, {}, f"t{number}")

    def work(self) -> None:
        """Some requests of each kind; what is refused or lost is remembered, and that is all."""
        for step in (self.produce, self.fetch, self.change, self.produce, self.fetch, self.ask):
            try:
                with self.broker.peer.connect(1 << 20) as wire:
                    wire.socket.settimeout(15)
                    step(wire)
            except (OSError, WrongAnswer):
                self.closed += 1

    def produce(self, wire) -> None:
        for _ in range(6):
            partition, self.number = self.chance.randrange(PARTITIONS), self.number + 1
            value = b"%012d" % self.number + b"v" * self.chance.choice([700, 700, 400_000])
            records = batch([value], int(time.time() * 1000))
            request = requests.produce(self.topic, partition, records, -1, 1)
            answer = wire.call(request)
            at = 4 + 2 + len(self.topic) + 4 + 4
            code, offset = struct.unpack_from(">hq", answer, at)
            self.told[code] += 1
            if code == 0:
                self.acknowledged.setdefault((self.topic, partition), {})[offset] = self.number

    def fetch(self, wire) -> None:
        for partition in range(PARTITIONS):
            known = self.acknowledged.get((self.topic, partition))
            if known:
                offset = self.chance.choice([0, max(known)])
                code, _ = self.fetched(wire, self.topic, partition, offset)
                self.told[code] += 1

    def fetched(self, wire, topic: str, partition: int, offset: int) -> tuple[int, bytes]:
        request = requests.fetch(topic, partition, offset, 1 << 18, 1, max_wait_ms=0)
        answer = wire.call(request)
        at = 4 + 4 + 2 + len(topic) + 4 + 4
        code, _high, _stable, aborted = struct.unpack_from(">hqqi", answer, at)
        at += 22 + max(aborted, 0) * 16
        (size,) = struct.unpack_from(">i", answer, at)
        return code, answer[at + 4 : at + 4 + max(size, 0)]

    def change(self, wire) -> None:
        name = f"x{time.time_ns()}"
        answer = wire.call(requests.create_topic(name, 1, {"file.delete.delay.ms": "0"}))
        (code,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name))
        self.told[code] += 1
        answer = wire.call(requests.delete_topic(name))
        self.told[struct.unpack_from(">h", answer, len(answer) - 2)[0]] += 1

    def ask(self, wire) -> None:
        wire.call(requests.api_versions())
        wire.call(requests.metadata([self.topic]))
        for partition in range(PARTITIONS):
            answer = wire.call(requests.end_offset(self.topic, partition))
            code = requests.END_FIELDS.unpack_from(answer, len(answer) - 18)[0]
            self.told[code] += 1

    def missing(self, topic: str) -> str:
        """What was acknowledged in this topic and is not there, in words."""
        with self.broker.peer.connect(1 << 20) as wire:
            wire.socket.settimeout(15)
            for (name, partition), known in self.acknowledged.items():
                if name != topic or not known:
                    continue
                offset, there = 0, set()
                while offset <= max(known):
                    code, data = self.fetched(wire, topic, partition, offset)
                    if code or not data:
                        return f"{topic}-{partition}: error {code} at {offset} of {max(known)}"
                    before = offset
                    for base, last in batches(data):
                        there.add(base)
                        offset = last + 1
                    if offset == before:
                        return f"{topic}-{partition}: nothing whole at {offset}"
                if lost := set(known) - there:
                    return f"{topic}-{partition}: {len(lost)} acknowledged are gone, {min(lost)} …"
        return ""


def _on_purpose(line: str) -> bool:
    """True if control ended because its log or its vote could not be written: nobody knows what of
    it is on the disk, and its successor reads that."""
    written = "__cluster_metadata-0/" in line or "quorum-state" in line
    return "child=control" in line and "StorageFailed" in line and written


def batches(data: bytes):
    """(base offset, last offset) of the whole ones."""
    at = 0
    while at + 61 <= len(data):
        base, size = struct.unpack_from(">qi", data, at)
        if at + 12 + size > len(data):
            return
        yield base, base + struct.unpack_from(">i", data, at + 23)[0]
        at += 12 + size


class Torture:
    """Runs by seed over one appliance, which is started again where a partition is offline."""

    def __init__(self, folder: Path, library: Path, calls=CALLS, errors=ERRORS) -> None:
        self.order = Order(folder / "order")
        self.broker = Suffering(folder / "data", library, self.order)
        self.calls, self.errors = calls, errors
        self.failures: list[str] = []
        self.costs: Counter[str] = Counter()
        self.hits: Counter[tuple[str, str]] = Counter()
        self.made: dict[str, list[str]] = {}  # kind of process → calls
        self.starts = 0
        self._read = 0  # of the output

    def learn(self) -> None:
        """Which calls each kind of process makes, so that most faults come about."""
        client = Client(self.broker, random.Random(0))
        client.new_topic(0)
        before = dict.fromkeys(CALLS, 0)
        for process, pid in self.broker.places().items():
            self.order.give(pid, Fault(process, CALLS[0], "EIO", 1 << 30))
            for _ in range(2):
                client.work()
                time.sleep(0.3)
            self.order.take_back()
            now = self.order.seen()
            kind = process.split("-")[0]
            made = [one for one in self.calls if now[one] > before[one]]
            self.made[kind] = sorted({*self.made.get(kind, []), *made})
            before = now

    def run(self, seed: int) -> None:
        """One fault."""
        chance = random.Random(seed)
        client = Client(self.broker, chance)
        try:
            client.new_topic(seed)
        except (OSError, WrongAnswer):  # the fault before came about as it was taken back
            self.costs["a connection, late"] += 1
            client.new_topic(-seed)
        client.work()  # something is there before
        places = self.broker.places()
        process = chance.choice(sorted(places))
        made = self.made.get(process.split("-")[0]) or list(self.calls)
        after = chance.choice([1, 1, 1, 2, 3, 5, 8])
        fault = Fault(process, chance.choice(made), chance.choice(self.errors), after)
        if fault.error not in POSSIBLE.get(fault.call, ERRORS):
            return
        late = self._news()
        if " bug " in late or "Traceback" in late:
            self.failures.append(f"before seed {seed}: {late[-1500:]}")
        client.told.clear()
        client.closed = 0
        self.order.give(places[fault.process], fault)
        client.work()
        time.sleep(chance.choice([0, 0, 0, 0.25]))  # some chores come by the clock
        if self.order.take_back():
            self.hits[fault.process.split("-")[0], fault.call] += 1
            self._judge(seed, fault, client, places)
        with contextlib.suppress(OSError, WrongAnswer):  # a start opens what is left of all of them
            self.broker.peer.delete(client.topic)

    def _judge(self, seed: int, fault: Fault, client: Client, places: dict[str, int]) -> None:
        problems = self._problems(client, places)
        if problems:
            text = "; ".join(problems)
            self.failures.append(f"seed {seed}, {fault}: {text}")
            print(f"FAILED {self.failures[-1]}", flush=True)

    def _problems(self, client: Client, places: dict[str, int]) -> list[str]:
        problems = []
        if wrong := {code for code in client.told if code and code not in MEANS_IT}:
            problems.append(f"clients were told {sorted(wrong)}")
        again = bool(client.told[56])
        if client.closed:
            self.costs["a connection"] += 1
        try:
            served = self._served()
        except AssertionError as cause:
            return [*problems, str(cause)]
        if not served:
            problems.append(f"nobody is served after {SERVED_S} s")
            again = True
        now = self.broker.places()
        if dead := [name for name, pid in places.items() if now.get(name) != pid]:
            self.costs[f"process {dead[0].split('-')[0]}"] += 1
        news = self._news()
        for line in news.splitlines():
            if " bug " in line or "Traceback" in line:
                problems.append(line[:1500])
            elif "child-killed" in line or ("child-died" in line and not _on_purpose(line)):
                problems.append(line[:300])
        if not again and (missing := client.missing(client.topic)):
            problems.append(missing)
            again = True
        if again:
            self.costs["a partition, until the next start"] += 1
            self._start_again()
            if missing := client.missing(client.topic):
                problems.append(f"after a start: {missing}")
        return problems

    def _served(self) -> bool:
        """Whether a new topic is made and takes a record, on every partition of it."""
        end = time.monotonic() + SERVED_S
        chance = random.Random(1)
        while time.monotonic() < end:
            if self.broker.process.poll() is not None:
                code = self.broker.process.returncode
                self._start_again()
                raise AssertionError(f"the appliance ended with {code}")
            probe = Client(self.broker, chance)
            try:
                probe.topic = self.broker.peer.create(PARTITIONS, {}, f"p{time.time_ns()}")
                with self.broker.peer.connect(1 << 16) as wire:
                    wire.socket.settimeout(5)
                    probe.produce(wire)
                if set(probe.told) == {0} and not probe.missing(probe.topic):
                    self.broker.peer.delete(probe.topic)
                    return True
            except (OSError, WrongAnswer):
                pass
            if probe.topic:
                with contextlib.suppress(OSError, WrongAnswer):
                    self.broker.peer.delete(probe.topic)
            time.sleep(0.05)
        return False

    def _news(self) -> str:
        text = self.broker.output()
        news, self._read = text[self._read :], len(text)
        return news

    def _start_again(self) -> None:
        self.starts += 1
        if self.broker.process.poll() is None:
            try:
                self.broker.stop()
            except AssertionError:
                self.failures.append("it did not end upon SIGTERM")
        try:
            self.broker.start()
        except AssertionError:
            self.failures.append(f"it did not start again; its threads wait in {self._waits()}")
            print(f"FAILED {self.failures[-1]}", flush=True)
            self.broker.kill()
            self.broker.start()
        self._news()

    def _waits(self) -> dict[str, list[str]]:
        """Name of a process → where in the kernel its threads are."""
        found: dict[str, list[str]] = {}
        for pid in self.broker.pids() if self.broker.process.poll() is None else []:
            for thread in Path(f"/proc/{pid}/task").glob("*"):
                name = (thread / "comm").read_text().strip()
                found.setdefault(name, []).append((thread / "wchan").read_text())
        return found

    def report(self) -> list[str]:
        """What fails where, how often, and what it cost."""
        lines = [f"{count:6} {process}: {call}" for (process, call), count in
                 sorted(self.hits.items())]  # fmt: skip
        lines += [f"{count:6} cost {what}" for what, count in sorted(self.costs.items())]
        faults = sum(self.hits.values())
        return [*lines, f"{faults} faults, {self.starts} starts, {len(self.failures)} failures"]


def main(words=None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser("python -m tests.faults.system_calls")
    parser.add_argument("--runs", type=int, default=1000, help="seeds")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=CALLS)
    parser.add_argument("--errors", nargs="+", choices=ERRORS, default=ERRORS)
    parser.add_argument("--minutes", type=float, default=60, help="no run begins after so many")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="penstock-calls-") as name:
        library = compiled(Path(name))
        if library is None:
            print("there is no cc to make the library with", file=sys.stderr)
            return 2
        torture = Torture(Path(name), library, asked.calls, asked.errors)
        end = time.monotonic() + 60 * asked.minutes
        with torture.broker:
            torture.learn()
            for seed in range(asked.seed, asked.seed + asked.runs):
                if time.monotonic() > end:
                    break
                torture.run(seed)
                if seed % 100 == 99:
                    print(f"{sum(torture.hits.values())} faults by {seed - asked.seed + 1} seeds")
        print(*torture.report(), sep="\n")
    return 1 if torture.failures else 0


if __name__ == "__main__":
    sys.exit(main())
