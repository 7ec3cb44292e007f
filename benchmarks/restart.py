"""What clients see of a restart, beside Apache Kafka in the same run.

    python -m benchmarks.restart [--repeat 5] [--java] [--socket] [--from TREE] [--kafka]

An idempotent producer of librdkafka (acks=all, a record each 5 ms) and a consumer in a group go on
while the broker ends and starts again; with --java a producer of Java, too. All are as they are by
default; --backoff sets the most that librdkafka waits before it connects again.

SIGTERM and start; kill -9 to all processes, and start; on the appliance also `penstock restart`,
with --socket SIGTERM and start while somebody else keeps its listening socket, as systemd does for
penstock.socket, and `penstock debug restart` with idle connections beside, of which none may be
lost. With --from, an earlier version's sources: from those to these, and back, by `penstock
restart` where both have it, else by SIGTERM and start.

Taken are the seconds until the broker has ended and until it answers again, and the longest silence
of each writer (between two acknowledgements) and of the reader (between two records). Every record
must come once and in order, or the run ends.
"""

import argparse
import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import kafka, machine, requests, tables
from benchmarks.compare.systems import System
from benchmarks.peer import Wire
from benchmarks.startup import ROOT, byte_compile
from benchmarks.steady import Clients

LEVELS = {"penstock": "D2", "kafka": "D1"}
"""Each acknowledges what it does by default."""
CONSOLE = [sys.executable, "-P", "-m", "console"]
_AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "some.socket"}
os.execv(sys.argv[2], sys.argv[2:])
"""

Taken = dict[str, float]
"""What was taken → seconds."""
Way = Callable[[], Taken]
Found = dict[tuple[str, str, str], list[float]]
"""(way, what was taken, system) → a value for each round, in seconds."""


class Installed(System):
    """An appliance whose sources can be replaced by others, as an upgrade in place does it. held:
    this process keeps its listening socket."""

    def __init__(self, data: Path, tree: Path, *, held: bool = False) -> None:
        super().__init__("penstock", LEVELS["penstock"], data)
        self._now = data.with_name(f"{data.name}-now")
        self._held: socket.socket | None = None
        if held:
            self._held = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        self.put(tree)

    @property
    def env(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self._now)}

    def put(self, tree: Path) -> None:
        """What is started from now on."""
        new = self._now.with_name(f"{self._now.name}-new")
        new.symlink_to(tree.resolve())
        new.replace(self._now)

    def launch(self) -> float:
        command = [*CONSOLE, *self.prepare()[3:]]
        pass_fds = []
        if self._held is not None:
            pass_fds.append(fcntl.fcntl(self._held.fileno(), fcntl.F_DUPFD_CLOEXEC, 10))
            command = [sys.executable, "-c", _AS_SYSTEMD, str(pass_fds[0]), *command]
        with (self.data / "out.txt").open("ab") as out:
            begun = time.monotonic()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env,
                pass_fds=pass_fds,
            )  # fmt: skip
        for fd in pass_fds:
            os.close(fd)
        return begun

    def told(self, *words: str) -> str:
        """What a command about its data folder prints."""
        command = [*CONSOLE, *words, "--data", str(self.data / "penstock"), "-o", "json"]
        return subprocess.run(
            command, env=self.env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def close(self) -> None:
        self.kill()
        if self._held is not None:
            self._held.close()


def again(system: System, end: Callable[[], None]) -> Taken:
    begun = time.monotonic()
    end()
    ended = time.monotonic()
    system.start()
    return {"end": ended - begun, "answers again": time.monotonic() - ended}


def restarted(system: Installed) -> Taken:
    begun = time.monotonic()
    (told,) = json.loads(system.told("restart"))
    taken = time.monotonic() - begun
    return {"until it has returned": taken, "away": told["away_ms"] / 1000}


def renewed(system: Installed, idle: int) -> Taken:
    """Renew the network processes under idle connections."""
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(system.peer.connect()) for _ in range(idle)]
        for wire in wires:
            wire.call(requests.api_versions())
        begun = time.monotonic()
        system.told("debug", "restart")
        taken = time.monotonic() - begun
        lost = sum(not _lives(wire) for wire in wires)
        if lost:
            raise SystemExit(f"{lost} of {idle} idle connections were lost")
    return {"until it has returned": taken}


def _lives(wire: Wire) -> bool:
    try:
        wire.call(requests.api_versions())
    except OSError:
        return False
    return True


def ways_of(system: System, idle: int) -> dict[str, Way]:
    found: dict[str, Way] = {"SIGTERM and start": lambda: again(system, system.stop)}
    if isinstance(system, Installed):
        found["penstock restart"] = lambda: restarted(system)
        found["penstock debug restart"] = lambda: renewed(system, idle)
    found["kill -9 and start"] = lambda: again(system, system.kill)
    return found


def versions(system: Installed, earlier: Path, now: Path) -> dict[str, Way]:
    """There and back."""
    knows = all((tree / "console/commands/restart.py").exists() for tree in (earlier, now))
    how = "penstock restart" if knows else "SIGTERM and start"

    def to(tree: Path) -> Taken:
        system.put(tree)
        return restarted(system) if knows else again(system, system.stop)

    return {f"upgrade: {how}": lambda: to(now), f"back: {how}": lambda: to(earlier)}


def round_of(
    system: System, ways: dict[str, Way], options: argparse.Namespace, found: Found
) -> None:
    system.start()
    topics = [system.peer.create(1) for _ in range(2 if options.java else 1)]
    with Clients(system.bootstrap, topics, options.backoff) as clients:
        for way, take in ways.items():
            clients.begin()
            taken = take()
            clients.go_on()
            taken |= {one.name: one.longest() for one in clients.ticks}
            for what, value in taken.items():
                found.setdefault((way, what, system.name), []).append(value)
    if clients.problem:
        raise SystemExit(clients.problem)
    system.stop()


def rounds(number: int, folder: Path, options: argparse.Namespace, found: Found) -> None:
    """One of everything, in another order each time."""
    tree = options.tree or ROOT
    with contextlib.ExitStack() as stack:

        def installed(name: str, tree: Path, *, held: bool = False) -> Installed:
            system = Installed(folder / f"{name}-{number}", tree, held=held)
            stack.callback(system.close)
            return system

        plain = installed("penstock", tree)
        todo: list[tuple[System, dict[str, Way]]] = [(plain, ways_of(plain, options.idle))]
        if options.socket:
            held = installed("held", tree, held=True)
            way = "SIGTERM and start, socket held"
            todo.append((held, {way: lambda: again(held, held.stop)}))
        if options.earlier:
            both = installed("versions", options.earlier)
            todo.append((both, versions(both, options.earlier, tree)))
        if options.kafka:
            other = System("kafka", LEVELS["kafka"], folder / f"kafka-{number}")
            stack.callback(other.kill)
            todo.append((other, ways_of(other, options.idle)))
        for system, ways in todo[:: -1 if number % 2 else 1]:
            round_of(system, ways, options, found)
            done = f"{system.name}: {', '.join(ways)}"
            print(f"round {number + 1}, {done}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.restart", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--idle", type=int, default=1000, help="idle connections")
    parser.add_argument("--backoff", type=int, help="reconnect.backoff.max.ms of librdkafka")
    parser.add_argument("--java", action="store_true", help="a producer of Java goes on, too")
    parser.add_argument("--socket", action="store_true", help="its socket held, as by systemd")
    parser.add_argument("--from", dest="earlier", type=Path, help="sources of an earlier version")
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka in turn")
    parser.add_argument("--tree", type=Path, help="the appliance's sources, when not these")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    byte_compile(*([options.tree] if options.tree else []))
    if options.earlier:
        byte_compile(options.earlier)
    if (options.kafka or options.java) and (problem := kafka.unavailable()):
        raise SystemExit(problem)
    found: Found = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        for number in range(options.repeat):
            rounds(number, Path(folder), options, found)
    names = ["penstock", *(["kafka"] if options.kafka else [])]
    rows = []
    for way, what in dict.fromkeys(key[:2] for key in found):
        values = [found.get((way, what, name), []) for name in names]
        rows.append([way, what, *map(tables.spread, values)])
        if options.kafka:
            rows[-1].append(tables.ratio(*values))
    print(f"{machine.state()}; seconds, medians (range)\n")
    head = ["", "", *names, *(["ratio"] if options.kafka else [])]
    print(tables.render(head, rows, markdown=options.markdown, left=2))


if __name__ == "__main__":
    main()
