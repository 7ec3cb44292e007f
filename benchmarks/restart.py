"""What clients see of a restart, beside Apache Kafka in the same run.

    python -m benchmarks.restart [--repeat 5] [--idle 1000] [--kafka]

An idempotent producer of librdkafka (acks=all, a record each 5 ms) and a consumer in a group go on
while the broker ends and starts again: by SIGTERM, or by SIGKILL to all of its processes. On the
appliance also while its network processes are renewed (`penstock debug restart`), with idle
connections beside, of which none may be lost. Taken are the seconds until the broker has ended and
until it answers again, and the longest silence of the writer (between two acknowledgements) and of
the reader (between two records). The clients' own wait before they connect again is part of that:
at most --backoff ms here, ten seconds where nobody sets it. Every record must come once and in
order, or the run ends.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka as ck

from benchmarks import kafka, requests, tables
from benchmarks.compare.systems import System
from benchmarks.peer import Wire
from benchmarks.startup import byte_compile

EVERY_S = 0.005
SETTLE_S = 1.0
LIMIT_S = 60.0
LEVELS = {"penstock": "D2", "kafka": "D1"}
"""Each acknowledges what it does by default."""
TAKEN = ("end", "answers again", "writer's silence", "reader's silence")

Found = dict[tuple[str, str, str], list[float]]
"""(way, what was taken, system) → a value for each round, in seconds."""


class Ticks:
    """Moments at which something came."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._longest = 0.0
        self.count = 0

    def tick(self) -> None:
        now = time.monotonic()
        self._longest = max(self._longest, now - self._last)
        self._last = now
        self.count += 1

    def begin(self) -> None:
        """Silence counts from here."""
        self._last, self._longest = time.monotonic(), 0.0

    def longest(self) -> float:
        """The longest silence since `begin`, in seconds."""
        return self._longest


class Clients:
    """The producer and the consumer, each in a thread. Use as a context manager."""

    def __init__(self, bootstrap: str, topic: str, backoff_ms: int) -> None:
        self.acknowledged, self.read = Ticks(), Ticks()
        self.problem = ""
        self._over = threading.Event()
        self._topic = topic
        common: dict[str, str | int] = {
            "bootstrap.servers": bootstrap, "log_level": 0,
            "reconnect.backoff.ms": min(10, backoff_ms), "reconnect.backoff.max.ms": backoff_ms,
        }  # fmt: skip
        self._producer = ck.Producer({**common, "enable.idempotence": True, "linger.ms": 0})
        self._consumer = ck.Consumer(
            {**common, "group.id": topic, "auto.offset.reset": "earliest",
             "fetch.wait.max.ms": 100}
        )  # fmt: skip
        self._threads = [threading.Thread(target=one) for one in (self._write, self._follow)]

    def __enter__(self) -> "Clients":
        for one in self._threads:
            one.start()
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in self._threads:
            one.join()
        self._consumer.close()

    def go_on(self) -> None:
        """Wait until more is acknowledged and read, and for a while of that. Raises SystemExit."""
        writes, reads = self.acknowledged.count, self.read.count
        end = time.monotonic() + LIMIT_S
        while self.acknowledged.count < writes + 50 or self.read.count < reads + 50:
            if self.problem or time.monotonic() > end:
                raise SystemExit(self.problem or "the clients do not go on")
            time.sleep(EVERY_S)
        time.sleep(SETTLE_S)

    def _write(self) -> None:
        number = 0
        while not self._over.is_set():
            self._producer.produce(self._topic, b"%d" % number, partition=0, on_delivery=self._told)
            number += 1
            self._producer.poll(EVERY_S)
            time.sleep(EVERY_S)
        if self._producer.flush(LIMIT_S):
            self.problem = "records were never acknowledged"

    def _told(self, error: ck.KafkaError | None, _: ck.Message) -> None:
        if error is not None:
            self.problem = f"a record failed: {error}"
        self.acknowledged.tick()

    def _follow(self) -> None:
        self._consumer.subscribe([self._topic])
        while not self._over.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            if message.value() != b"%d" % self.read.count:
                self.problem = f"read {message.value()!r} where {self.read.count} follows"
            self.read.tick()


def again(system: System, end: Callable[[], None]) -> tuple[float, float]:
    """End it, and start it: (seconds until it has ended, seconds from then until it answers)."""
    begun = time.monotonic()
    end()
    ended = time.monotonic()
    system.start()
    return ended - begun, time.monotonic() - ended


def renew(system: System, idle: int) -> tuple[float, float]:
    """Renew the network processes under idle connections: (seconds that takes, 0)."""
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(system.peer.connect()) for _ in range(idle)]
        for wire in wires:
            wire.call(requests.api_versions())
        command = [sys.executable, "-m", "console", "debug", "restart"]
        begun = time.monotonic()
        subprocess.run(
            [*command, "--data", system.data / "penstock"], cwd=system.tree, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        taken = time.monotonic() - begun
        lost = sum(not _lives(wire) for wire in wires)
        if lost:
            raise SystemExit(f"{lost} of {idle} idle connections were lost")
    return taken, 0.0


def _lives(wire: Wire) -> bool:
    try:
        wire.call(requests.api_versions())
    except OSError:
        return False
    return True


def round_of(system: System, options: argparse.Namespace, found: Found) -> None:
    ways: dict[str, Callable[[], tuple[float, float]]] = {
        "SIGTERM and start": lambda: again(system, system.stop),
        "kill -9 and start": lambda: again(system, system.kill),
    }
    if system.name == "penstock":
        ways["debug restart"] = lambda: renew(system, options.idle)
    topic = system.peer.create(1)
    with Clients(system.bootstrap, topic, options.backoff) as clients:
        for way, take in ways.items():
            clients.acknowledged.begin()
            clients.read.begin()
            ended, answers = take()
            clients.go_on()
            silences = clients.acknowledged.longest(), clients.read.longest()
            for what, value in zip(TAKEN, (ended, answers, *silences), strict=True):
                found.setdefault((way, what, system.name), []).append(value)
    if clients.problem:
        raise SystemExit(clients.problem)
    system.peer.delete(topic)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.restart", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--idle", type=int, default=1000, help="idle connections")
    parser.add_argument("--backoff", type=int, default=100, help="reconnect.backoff.max.ms")
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka in turn")
    parser.add_argument("--tree", type=Path, help="the appliance's sources, when not these")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    byte_compile(*([options.tree] if options.tree else []))
    names = ["penstock", *(["kafka"] if options.kafka else [])]
    if options.kafka and (problem := kafka.unavailable()):
        raise SystemExit(problem)
    found: Found = {}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        contextlib.ExitStack() as stack,
    ):
        for number in range(options.repeat):
            for name in names[:: -1 if number % 2 else 1]:
                system = System(name, LEVELS[name], Path(folder) / f"{name}-{number}", options.tree)
                stack.callback(system.kill)
                round_of(system.start(), options, found)
                system.stop()
                print(f"round {number + 1}, {name}: done", file=sys.stderr, flush=True)
    rows = []
    for way, what in dict.fromkeys(key[:2] for key in found):
        values = [found.get((way, what, name), []) for name in names]
        rows.append([way, what, *map(tables.spread, values)])
        if options.kafka:
            rows[-1].append(tables.ratio(*values))
    print(f"load average {os.getloadavg()[0]:.1f}; seconds, medians (range)\n")
    head = ["", "", *names, *(["ratio"] if options.kafka else [])]
    print(tables.render(head, rows, markdown=options.markdown, left=2))


if __name__ == "__main__":
    main()
