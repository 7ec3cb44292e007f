"""What `penstock console` costs while nobody presses a key: each view at a terminal of its own.

Processor time, memory and the bytes that go to the terminal, per view and size of the terminal,
over an appliance with many topics that rests or, with `moves`, has a little traffic.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import procstat, tables

SIZES = ((80, 24), (120, 40), (200, 50))
TOPIC, GROUP = "orders", "billing"
VIEWS = (
    "overview", "topics", f"topic {TOPIC}", f"records {TOPIC}", f"records {TOPIC} 0:0",
    f"tail {TOPIC}", "groups", f"group {GROUP}", "quotas", "quota client-id=loader", "jobs",
    "clients", "txns", "log", "nodes", "users", "acls", "can loader write topic orders", "audit",
    "certificates", "deleted", "topology", "heat", f"heat {TOPIC}",
)  # fmt: skip
_FIRST_S = 60.0
_COMMAND = (sys.executable, "-c", "from console import main; main()", "console")


@dataclass(frozen=True)
class Cost:
    """One view. cpu: percent of a core; memory: bytes (RSS, and PSS), written: bytes a minute."""

    view: str
    size: tuple[int, int]
    cpu: float
    rss: int
    pss: int
    written: float


class Seat:
    """A console at a terminal of its own, whose output is counted and thrown away."""

    def __init__(self, words, size, env=None):
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        told = {one: what for one, what in os.environ.items() if one not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [*_COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, env=told | {"TERM": "xterm-256color"} | (env or {}),
        )  # fmt: skip
        os.close(theirs)
        self.written = 0
        self.first = threading.Event()
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        with contextlib.suppress(OSError):
            while select.select([self._ours], [], [])[0] and (some := os.read(self._ours, 65536)):
                self.written += len(some)
                if self.written > 2000:
                    self.first.set()

    def bytes_of(self, keys, settle_s):
        """How many bytes go to the terminal in so many seconds after these keys."""
        before = self.written
        os.write(self._ours, keys.encode())
        time.sleep(settle_s)  # the picture is what came by then
        return self.written - before

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)


def measure(bootstrap, view, size, settle_s, seconds):
    """The cost of one view, a Cost. Raises SystemExit: the console ended."""
    seat = Seat(["-b", bootstrap, *view.split()], size)
    try:
        seat.first.wait(_FIRST_S)
        time.sleep(settle_s)  # what follows the first picture is no part of resting
        pid = seat.process.pid
        began, cpu, written = time.monotonic(), procstat.cpu_seconds(pid), seat.written
        time.sleep(seconds)  # the measurement is the waiting
        passed = time.monotonic() - began
        if seat.process.poll() is not None:
            raise SystemExit(f"the console ended with {seat.process.returncode} in {view}")
        used = procstat.memory(pid)
        return Cost(
            view, size, (procstat.cpu_seconds(pid) - cpu) / passed * 100, used.rss, used.pss,
            (seat.written - written) / passed * 60,
        )  # fmt: skip
    finally:
        seat.close()


def fill(bootstrap, topics):
    """Topics, of which one has records that a group has read in part; a quota, and a user."""
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [f"topic-{n:06}" for n in range(topics - 1)]
    made = [NewTopic(TOPIC, 6, 1), *(NewTopic(name, 1, 1) for name in names)]
    for future in admin.create_topics(made, request_timeout=120).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(6000):
        producer.produce(TOPIC, b'{"number": %d}' % number, str(number), partition=number % 6)
    producer.flush()
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    reader.commit(
        offsets=[TopicPartition(TOPIC, number, 400) for number in range(6)], asynchronous=False
    )
    reader.close()


class Moves:
    """A little traffic until it is left: 50 records a second, which a group reads."""

    def __init__(self, bootstrap):
        self._bootstrap = bootstrap
        self._over = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._write, self._read)]

    def __enter__(self):
        for one in self._threads:
            one.start()

    def __exit__(self, *_):
        self._over.set()
        for one in self._threads:
            one.join()

    def _write(self):
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._bootstrap, "client.id": "loader"})
        while not self._over.wait(0.1):
            for name in (TOPIC, "topic-000001", "topic-000002", "topic-000500", TOPIC):
                producer.produce(name, os.urandom(100))
            producer.poll(0)
        producer.flush()

    def _read(self):
        from confluent_kafka import Consumer

        reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": GROUP})
        reader.subscribe([TOPIC])
        while not self._over.is_set():
            reader.consume(100, 0.2)
        reader.close()


PRESSED = (
    ("another row: j", "j"), ("half a page: Ctrl-D", "\x04"), ("the last row: G", "G"),
    ("another view: 3", "3"), ("into a group: Enter", "\r"), ("back: Esc", "\x1b"),
    ("a letter of a filter", "2/0"), ("help: ?", "\x1b?"),
)  # fmt: skip
_LINK_BYTES: Final = 10_000
"""A second over 80 kbit/s."""


def measure_link(bootstrap, topics, sizes):
    """Prints the bytes of a console's pictures, and what they take over 80 kbit/s."""
    fill(bootstrap, topics)
    found = {}
    for size in sizes:
        seat = Seat(["-b", bootstrap], size)
        try:
            seat.first.wait(_FIRST_S)
            time.sleep(10)
            found["first pictures, of 10 s", size] = seat.written
            found["topics: 2", size] = seat.bytes_of("2", 2)
            for what, keys in PRESSED:
                found[what, size] = seat.bytes_of(keys, 2)
        finally:
            seat.close()
    head = ["a key", *(f"{w} × {h}: bytes, s" for w, h in sizes)]
    lines = [
        [what, *(f"{found[what, size]:,}, {found[what, size] / _LINK_BYTES:.1f}" for size in sizes)]
        for what in dict.fromkeys(what for what, _ in found)
    ]
    print(tables.render(head, lines, markdown=True))


def run(chosen, bootstrap):
    """Measures what was chosen, prints it as it is known, and writes a table."""
    fill(bootstrap, chosen.topics)
    sizes = [tuple(map(int, one.split("x"))) for one in chosen.sizes]
    wanted = [one for one in VIEWS if not chosen.only or one.split()[0] in chosen.only]
    work = [(view, size) for size in sizes for view in wanted]
    found = []
    traffic = Moves(bootstrap) if chosen.moves else contextlib.nullcontext()
    with traffic, ThreadPoolExecutor(chosen.at_once) as pool:
        for one in pool.map(
            lambda one: measure(bootstrap, *one, chosen.settle, chosen.seconds), work
        ):
            found.append(one)
            print(
                f"{one.view:32} {one.size[0]}x{one.size[1]}  {one.cpu:5.2f} %  "
                f"{one.rss / 1e6:6.1f} MB ({one.pss / 1e6:.1f})  {one.written:8.0f} B/min",
                flush=True,
            )
    text = _as_table(found, sizes)
    print(text)
    if chosen.to:
        Path(chosen.to).write_text(text + "\n")


def _as_table(found, sizes):
    """A row for each view: per size the processor time, and the bytes to the terminal."""
    of = {(one.view, one.size): one for one in found}
    head = ["view"]
    for width, height in sizes:
        head += [f"{width} × {height}: CPU %", "kB/min"]
    head.append("MB")
    lines = []
    for view in dict.fromkeys(one.view for one in found):
        line = [view]
        for size in sizes:
            line += [f"{of[view, size].cpu:.1f}", f"{of[view, size].written / 1000:.1f}"]
        line.append(f"{max(of[view, size].rss for size in sizes) / 1e6:.0f}")
        lines.append(line)
    return tables.render(head, lines, markdown=True)
