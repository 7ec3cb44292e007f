"""Apache Kafka itself, from its jars: fetch, format, start, stop, and run its Java tools.

    python -m benchmarks.kafka fetch                        the jars, into benchmarks/kafka/target,
                                                            and an archive of their classes
    python -m benchmarks.kafka up --data DIR --port 9092    one node in the foreground
    python -m benchmarks.kafka tool CLASS ARGUMENT...       one of its tools

An environment variable PENSTOCK_KAFKA_LIBS may name a folder that holds the jars already. Called by
the benchmarks and by the tests that use Kafka's tools or its Streams; those skip when java or the
jars are absent.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from benchmarks import kafka_classes

HERE = Path(__file__).parent / "kafka"
CLUSTER_ID = "cGVuc3RvY2stYmVuY2htYQ"
FETCH_LIMIT_S = 300
TOOLS, STREAMS = "kafka-tools", "kafka-streams"
"""Jars; where the first one is, all are that the broker and the tools need."""

_WORKERS = 16
_IN_A_ROW = 16
_given: dict[int, None] = {}


def libs(jar: str = TOOLS) -> Path | None:
    """The folder with the jars, or None when the jar of that name has not been fetched."""
    named = os.environ.get("PENSTOCK_KAFKA_LIBS")
    folder = Path(named) if named else HERE / "target" / "libs"
    return folder if any(folder.glob(f"{jar}-*.jar")) else None


def unavailable(jar: str = TOOLS) -> str | None:
    """Why what is in that jar cannot run here, None when it can. Fetches nothing."""
    if shutil.which("java") is None:
        return "java is not installed"
    if libs(jar) is None:
        return "Kafka's jars are not here: run `python -m benchmarks.kafka fetch` (needs Maven)"
    return None


def fetch() -> Path:
    """Copy the jars from Maven's repository. Raises SystemExit with the reason when it cannot."""
    if (found := libs(STREAMS)) is not None:
        return found
    maven = shutil.which("mvn")
    if maven is None:
        raise SystemExit("mvn is not installed; it is needed once, to fetch Kafka's jars")
    command = [maven, "-q", "-B", "-Dstyle.color=never", "-f", str(HERE / "pom.xml")]
    command.append("dependency:copy-dependencies")
    done = subprocess.run(command, timeout=FETCH_LIMIT_S, check=False)
    found = libs()
    if done.returncode or found is None:
        raise SystemExit(f"mvn ended with {done.returncode}: Kafka's jars were not fetched")
    return found


def java(class_name: str, *arguments: str, heap: str = "256m") -> list[str]:
    """The command line that runs a class of Kafka's jars. heap: as java's -Xmx takes it. Below a
    gigabyte it is a tool, or a broker of a test: that starts fast and is not measured."""
    folder = libs()
    assert folder is not None, "ask unavailable() first"
    folder = folder.resolve()
    kind = kafka_classes.flags(folder) if heap.endswith("m") else ["-XX:+UseG1GC"]
    return ["java", f"-Xmx{heap}", *kind, "-cp", f"{folder}/*", class_name, *arguments]


def tool(
    class_name: str, *arguments: str, timeout_s: float = 60, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end; output captured as text."""
    return subprocess.run(
        java(class_name, *arguments), input=stdin, capture_output=True, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip


def free_port(other_than: int = 0) -> int:
    """A TCP port that nobody listens on just now, at any address of this host; see `free_ports`."""
    while (port := free_ports(1)) == other_than:
        pass
    return port


def free_ports(count: int) -> int:
    """The first of `count` TCP ports in a row, 16 at most, that nobody listens on just now, at any
    address of this host: a listener of every address needs all of them.

    They lie below the range the system hands out by itself: a client that keeps asking whether a
    broker is there yet would otherwise take the broker's port, or connect to itself. Each worker
    of pytest-xdist has ports of its own, sixteen in a row: a JVM takes seconds to listen, and who
    started something at the same port meanwhile would be taken for it. None is given twice before
    half of them were: a cluster takes nine of 750 before its first node listens.
    """
    assert 0 < count <= _IN_A_ROW, count
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    while True:
        row = random.randrange(20_000 + worker * _IN_A_ROW, 32_000, _WORKERS * _IN_A_ROW)
        first = row + random.randrange(_IN_A_ROW - count + 1)
        ports = range(first, first + count)
        if any(port in _given for port in ports) or not all(map(_is_free, ports)):
            continue
        _given.update(dict.fromkeys(ports))
        while len(_given) > 6_000 // _WORKERS:
            del _given[next(iter(_given))]
        return first


def _is_free(port: int) -> bool:
    """False when somebody listens at one address of this host or more: a listener of all of them,
    IPv6 and IPv4, could not be opened."""
    both = socket.has_dualstack_ipv6()
    family, host = (socket.AF_INET6, "::") if both else (socket.AF_INET, "")
    with contextlib.suppress(OSError), socket.socket(family) as probe:
        if both:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        probe.bind((host, port))
        return True
    return False


def _kept_controller_port(data: Path) -> int | None:
    """The quorum remembers its voter's port, so a second start must use it again."""
    path = data / "server.properties"
    found = re.search(r"CONTROLLER://127.0.0.1:(\d+)", path.read_text()) if path.exists() else None
    return int(found[1]) if found else None


def formatted(folder: Path, settings: dict[str, str], *flags: str) -> str:
    """Write the properties into a node's folder, format its log.dirs if it is new. flags: of the
    format step. Returns the properties' path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    first = settings["log.dirs"].split(",")[0]
    if not (Path(first) / "meta.properties").exists():
        step = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path), *flags)
        form = tool(*step)
        if form.returncode:
            raise RuntimeError(f"Kafka's format step failed: {form.stdout}{form.stderr}")
    return str(path)


class Kafka:
    """One KRaft node with default settings in a folder. Use as a context manager: it stops what it
    started.
    """

    def __init__(
        self, data: Path, port: int | None = None, heap: str = "1g", **settings: str
    ) -> None:
        """settings: further properties, dots written as underscores."""
        self.data = data
        self.port = port or free_port()
        self.controller_port = _kept_controller_port(data) or free_port(self.port)
        self.heap = heap
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    def format(self) -> str:
        """Write the properties, format the folder if it is new. Returns the properties' path."""
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "log.dirs": str(self.data / "logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        } | self.settings
        return formatted(self.data, lines, "--standalone")

    def start(self, limit_s: float = 60) -> None:
        """Format if need be, start, wait until it accepts connections."""
        properties = self.format()
        with (self.data / "out.txt").open("ab") as out:
            self.process = subprocess.Popen(
                java("kafka.Kafka", properties, heap=self.heap), stdout=out, stderr=out
            )
        try:
            self._wait(limit_s)
        except BaseException:
            self.stop()
            raise

    def _wait(self, limit_s: float) -> None:
        assert self.process is not None
        end = time.monotonic() + limit_s
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    tail = (self.data / "out.txt").read_text()[-2000:]
                    raise RuntimeError(f"Kafka did not start: {tail}") from None
                time.sleep(0.02)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after 20 s. Harmless when it is not running."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> "Kafka":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="fetch the jars with Maven")
    up = commands.add_parser("up", help="run one node in the foreground")
    up.add_argument("--data", type=Path, help="its folder (default: a temporary one, removed)")
    up.add_argument("--port", type=int, default=9092)
    up.add_argument("--heap", default="1g", help="java -Xmx")
    up.add_argument("-o", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    run = commands.add_parser("tool", help="run one of Kafka's tools")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    folder = fetch()
    if options.command == "fetch" and unavailable() is None:
        kafka_classes.make(folder.resolve())
    if options.command == "tool":
        sys.exit(subprocess.run(java(*options.arguments), check=False).returncode)
    if options.command == "up":
        _foreground(options)


def _foreground(options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = dict(item.split("=", 1) for item in options.settings)
    with tempfile.TemporaryDirectory() as temporary:
        kafka = Kafka(options.data or Path(temporary), options.port, options.heap)
        kafka.settings |= settings
        with kafka:
            print(f"ready: {kafka.bootstrap} pid {kafka.pid}", flush=True)
            try:
                assert kafka.process is not None
                kafka.process.wait()
            except KeyboardInterrupt:
                pass


if __name__ == "__main__":
    main()
