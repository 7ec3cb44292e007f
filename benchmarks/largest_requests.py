"""What the largest request that the limits allow costs everybody else, for each API.

    python -m benchmarks.largest_requests [--mode full] [--apis Metadata 'Describe*' …] [--markdown]

An appliance with default settings, one network and one I/O process, and a topic of many partitions.
Beside it a bystander writes a small record and reads it back, every 5 ms; its waits count from the
moment each was due. Meanwhile each API is asked its largest request (`largest.py`): each shape
once, then the shape with the longest turn from five connections at a time, the worst ones from
fifty, and the smallest request in floods. Told are the longest turn of each process's loop, what
its memory grew by, and the bystander's p99 and longest wait. `!` marks a goal that is missed: 250
ms, 256 MiB, no process replaced. --mode full: every shape from 1, 5 and 50 connections.
"""

import argparse
import fnmatch
import multiprocessing
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from struct import unpack_from

from appliance.ring.process_table import Peer as Place
from appliance.ring.process_table import ProcessTable
from appliance.wire.messages import request_type, request_versions
from benchmarks import batches, kafka, largest, machine, requests, tables
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.turns import _tables

OTHER = "other"
EVERY_S = 0.005
PARTITIONS = 10_000
ANSWER_S = 60.0
"""No answer takes longer, or it is told as such."""
ELEMENTS, SIZE = 1 << 15, 1 << 24
"""The defaults of penstock.request.max.elements and penstock.request.max.bytes."""
WAIT_MS, GROWTH_MIB = 250.0, 256.0
"""The goals."""
MANY_CONNECTIONS = 5
"""APIs that are asked from fifty connections in short mode: those with the longest turns."""
FLOOD = 64
"""Small requests that a connection sends before it reads an answer."""


@dataclass
class Cost:
    """One measurement. turns: ms by process; growth: MiB by process; waits: ms, sorted. answer_ms:
    the longest wait for an answer of the API itself. closed: connections that were closed."""

    title: str
    connections: int
    size: int
    answers: int = 0
    closed: int = 0
    answer_ms: float = 0.0
    turns: dict[str, float] = field(default_factory=dict)
    growth: dict[str, float] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def wait(self, share: float) -> float:
        return self.waits[min(len(self.waits) - 1, int(len(self.waits) * share))]

    @property
    def misses(self) -> bool:
        grown = max(self.growth.values(), default=0.0)
        slow = bool(self.waits) and self.waits[-1] > WAIT_MS
        return slow or grown > GROWTH_MIB or bool(self.replaced)


class Appliance:
    """One that runs in a folder of its own until `stop`."""

    def __init__(self, folder: Path) -> None:
        self.port = kafka.free_port()
        command = [sys.executable, "-m", "console", "up", "--data", str(folder)]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        command += ["-o", "penstock.net.processes=1", "-o", "penstock.io.processes=1"]
        self.errors = folder.with_suffix(".log")
        with open(self.errors, "wb") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )
        self.peer = Peer("penstock", ("127.0.0.1", self.port), self._process.pid)
        self._wait()
        self.table: ProcessTable = _tables(folder).processes

    def _wait(self) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(OSError, WrongAnswer), self.peer.connect() as wire:
                wire.call(requests.api_versions())
                return
            time.sleep(0.02)
        raise SystemExit(f"no appliance on port {self.port}: see {self.errors}")

    def pids(self) -> dict[Place, int]:
        return {place: self.table.pid(place) for place in self.table.peers}

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def versions(self) -> dict[int, int]:
        """API key to the highest version that clients are served."""
        with self.peer.connect() as wire:
            body = wire.call(requests.api_versions())
        (count,) = unpack_from(">i", body, 2)
        rows = (unpack_from(">hhh", body, 6 + 6 * at) for at in range(count))
        return {key: highest for key, _, highest in rows}


# Who waits ----------------------------------------------------------------------------------------


def _bystand(address: tuple[str, int], pipe: Connection) -> None:
    """Write and read a small record every 5 ms; tell the waits since the last question."""
    batch = batches.uniform(1, 100, time.time_ns() // 1_000_000)
    write, waits, offset = requests.produce(OTHER, 0, batch, 1, 1), [], 0
    shape = requests.produce_shape(OTHER, 7)
    with Wire(address) as wire:
        due = time.monotonic()
        while True:
            if pipe.poll():
                if pipe.recv() is None:
                    return
                pipe.send(waits)
                waits, due = [], time.monotonic()
            try:
                answer = wire.call(write)
                offset = shape.fields.unpack_from(answer, shape.at - 8)[1]
                wire.call(requests.fetch(OTHER, 0, max(0, offset), 1 << 10, 1, max_wait_ms=0))
            except (OSError, WrongAnswer):
                wire.close()
                wire.socket = socket.create_connection(address, ANSWER_S)
            now = time.monotonic()
            waits.append((now - due) * 1e3)
            due = max(due + EVERY_S, now)  # one wait is one wait
            time.sleep(due - now)


class Bystander:
    """A client of its own process."""

    def __init__(self, peer: Peer) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_bystand, args=(peer.address, theirs), daemon=True)
        self._process.start()

    def waits(self) -> list[float]:
        """ms, sorted, since this was called before."""
        self._pipe.send(1)
        return sorted(self._pipe.recv())

    def stop(self) -> None:
        self._pipe.send(None)
        self._process.join()


# Who is watched -----------------------------------------------------------------------------------


def _anonymous(pid: int) -> float:
    """MiB that are this process's alone, not what it shares."""
    try:
        with open(f"/proc/{pid}/status") as file:
            found = next(line for line in file if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return 0.0
    return int(found.split()[1]) / 1024


@contextmanager
def watched(appliance: Appliance, bystander: Bystander, cost: Cost) -> Iterator[None]:
    """Notes what happens inside in `cost`."""
    before = appliance.pids()
    base = {place: _anonymous(pid) for place, pid in before.items()}
    most, over = dict(base), threading.Event()

    def sample() -> None:
        while not over.wait(0.02):
            for place, pid in before.items():
                most[place] = max(most[place], _anonymous(pid))

    for place in before:
        appliance.table.forget_turns(place)
    thread = threading.Thread(target=sample)
    bystander.waits()
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        cost.waits = bystander.waits()
        for place, pid in appliance.pids().items():
            name = str(place)
            cost.turns[name] = appliance.table.longest_turn(place) / 1e6
            cost.growth[name] = most[place] - base[place]
            if pid != before[place]:
                cost.replaced.append(name)


# Who asks -----------------------------------------------------------------------------------------


def _ask(
    peer: Peer, frame: bytes, times: int, until: float, cost: Cost, lock: threading.Lock
) -> None:
    """Send the frame so many times at once, read the answers, and again until it is late."""
    answers, longest, closed, began = 0, 0.0, 0, time.monotonic()
    buffer = bytearray(1 << 20)
    while True:
        try:
            with socket.create_connection(peer.address, ANSWER_S) as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while True:
                    began = time.monotonic()
                    sock.sendall(frame * times)
                    for _ in range(times):
                        _skip_answer(sock, buffer)
                        answers += 1
                    longest = max(longest, time.monotonic() - began)
                    if time.monotonic() >= until:
                        break
        except (OSError, WrongAnswer):
            closed += 1
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.01)
        if time.monotonic() >= until:
            break
    with lock:
        cost.answers += answers
        cost.closed += closed
        cost.answer_ms = max(cost.answer_ms, longest * 1e3)


def _skip_answer(sock: socket.socket, buffer: bytearray) -> None:
    left, known = 4, False
    while left:
        count = sock.recv_into(buffer, min(left, len(buffer)))
        if not count:
            raise WrongAnswer("closed")
        left -= count
        if not left and not known:
            assert count == 4, "four bytes come together over loopback"
            left, known = unpack_from(">i", buffer)[0], True


def load(
    appliance: Appliance, bystander: Bystander, title: str, frame: bytes, connections: int,
    seconds: float, times: int = 1,
) -> Cost:  # fmt: skip
    """Ask this from so many connections for so long, and wait for all answers."""
    cost, lock = Cost(title, connections, len(frame)), threading.Lock()
    with watched(appliance, bystander, cost):
        until = time.monotonic() + seconds
        work = (appliance.peer, frame, times, until, cost, lock)
        threads = [threading.Thread(target=_ask, args=work) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return cost


# All of them --------------------------------------------------------------------------------------


class Measuring:
    """The measurements of one run, told as they come."""

    def __init__(self, appliance: Appliance, bystander: Bystander, *, is_full: bool) -> None:
        self._appliance = appliance
        self._bystander = bystander
        self._is_full = is_full
        self.table: list[Cost] = []

    def add(self, cost: Cost) -> Cost:
        self.table.append(cost)
        print(*cells(cost), sep="\t", file=sys.stderr, flush=True)
        return cost

    def alone(self) -> None:
        cost = Cost("alone", 0, 0)
        with watched(self._appliance, self._bystander, cost):
            time.sleep(2)
        self.add(cost)

    def load(
        self, title: str, frame: bytes, connections: int, seconds: float, times: int = 1
    ) -> Cost:
        return load(self._appliance, self._bystander, title, frame, connections, seconds, times)

    def measure(self, key: int, version: int) -> tuple[float, str, bytes]:
        """One API. Returns the shape with the longest turn: ms, title, frame."""
        name, worst = schema_name(key), (0.0, "", b"")
        for shape in largest.shapes(key, version, ELEMENTS, SIZE):
            title = f"{name}: {shape.title}"
            once = self.load(title, shape.frame, 1, 0)
            worst = max(worst, (max(once.turns.values()), title, shape.frame))
            if self._is_full or once.misses:
                self.add(once)
            if self._is_full:
                self.add(self.load(title, shape.frame, 5, 1))
                self.add(self.load(title, shape.frame, 50, 1))
        if worst[2] and not self._is_full:
            self.add(self.load(worst[1], worst[2], 5, 0.5))
        small = largest.smallest(key, version)
        self.add(self.load(f"{name}: flood", small.frame, 5, 0.3, FLOOD))
        return worst


def schema_name(key: int) -> str:
    """The API's name as Kafka writes it."""
    return request_type(key, request_versions(key)[-1]).__name__.removesuffix("Request")


def measure(appliance: Appliance, patterns: list[str], mode: str) -> list[Cost]:
    """Everything, for the APIs whose names match one of the shell patterns."""
    bystander = Bystander(appliance.peer)
    one = Measuring(appliance, bystander, is_full=mode == "full")
    try:
        one.alone()
        worst = [
            one.measure(key, version)
            for key, version in sorted(appliance.versions().items())
            if any(fnmatch.fnmatch(schema_name(key), pattern) for pattern in patterns)
        ]
        for _, title, frame in sorted(worst, reverse=True)[:MANY_CONNECTIONS]:
            if frame and mode != "full":
                one.add(one.load(title, frame, 50, 0.5))
    finally:
        bystander.stop()
    return one.table


HEAD = ["request", "connections", "KB", "answers", "its own longest ms", "longest turn ms",
        "memory + MiB", "bystander p99 ms", "longest ms", ""]  # fmt: skip


def cells(cost: Cost) -> list[str]:
    def told(values: dict[str, float], least: float) -> str:
        return ", ".join(f"{k} {v:.0f}" for k, v in values.items() if v >= least) or "–"

    wait, longest = (f"{cost.wait(share):.1f}" if cost.waits else "–" for share in (0.99, 1.0))
    said = "!" if cost.misses else ""
    if cost.replaced:
        said += " replaced: " + ", ".join(cost.replaced)
    if cost.closed:
        said += f" closed {cost.closed}"
    return [cost.title, str(cost.connections), f"{cost.size / 1e3:.1f}", str(cost.answers),
            f"{cost.answer_ms:.0f}", told(cost.turns, 5), told(cost.growth, 1), wait, longest,
            said]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.largest_requests", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--mode", choices=("short", "full"), default="short")
    parser.add_argument("--apis", nargs="*", default=["*"], help="names or shell patterns")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of the large topic")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and stop what was started
    with tempfile.TemporaryDirectory(prefix="penstock-largest-") as parent:
        appliance = Appliance(Path(parent) / "data")
        try:
            appliance.peer.create(1, name=OTHER)
            with appliance.peer.connect(1 << 24) as wire:
                wire.call(requests.create_topic(largest.KNOWN, options.partitions, {}))
            time.sleep(2)  # its partitions are opened
            table = measure(appliance, options.apis, options.mode)
        finally:
            appliance.stop()
    print(f"{machine.state()}\n")
    print(tables.render(HEAD, [cells(cost) for cost in table], markdown=options.markdown))


if __name__ == "__main__":
    main()
