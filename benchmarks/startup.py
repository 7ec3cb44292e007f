"""From exec to ready, and to the first acknowledged record.

    python -m benchmarks.startup [--repeat 5] [--kafka]

Each repetition starts the appliance twice: in an empty folder (it formats itself) and again in the
same one. Three moments are taken: the line that says where it listens, the first ApiVersions
answer, the first acknowledged record. With --kafka, Apache Kafka runs in turn (its format step is
not counted).
"""

import argparse
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import batches, kafka, requests, tables
from benchmarks.peer import TIMEOUT_S, Wire, WrongAnswer

ROOT = Path(__file__).parents[1]
LIMIT_S = 60.0
PACKAGES = ("appliance", "console", "penstock", "spark_local")
STEPS = ("ready line", "first answer", "first acknowledged record")


def byte_compile(tree: Path = ROOT) -> None:
    """Leave our byte code beside its sources, as pip does when it installs it. Without that, and
    with PYTHONDONTWRITEBYTECODE set, each start would translate every module anew. What cannot be
    translated is left to who imports it."""
    packages = [tree / name for name in PACKAGES if (tree / name).is_dir()]
    subprocess.run([sys.executable, "-m", "compileall", "-qq", *packages], check=False)


def appliance_command(data: Path, port: int) -> list[str]:
    """How the appliance is started on a port of the loopback."""
    listen = f"127.0.0.1:{port}"
    return [sys.executable, "-m", "console", "up", "--data", str(data), "--listen", listen]


def moments(command: list[str], port: int, partition: str) -> list[float | None]:
    """Start `command`, take the three moments (seconds after exec), stop it. None: never seen.

    partition: name of the topic that takes the first record; it is created when the answer comes.
    """
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    text, ready, answered, acknowledged = b"", None, None, None
    watch = selectors.DefaultSelector()
    watch.register(process.stdout, selectors.EVENT_READ)
    try:
        while time.monotonic() - begun < LIMIT_S and process.poll() is None:
            watch.select(0.002)
            with contextlib.suppress(TypeError):
                text += process.stdout.read() or b""
            if ready is None and str(port).encode() in text:
                ready = time.monotonic() - begun
            if answered is None and _answers(port):
                answered = time.monotonic() - begun
                _first_record(port, partition, begun + LIMIT_S)
                acknowledged = time.monotonic() - begun
            if answered is not None and (
                ready is not None or time.monotonic() - begun > answered + 1
            ):
                break
    finally:
        _stop(process)
    if answered is None:
        raise SystemExit(f"{command[0]} did not start:\n{text.decode(errors='replace')[-2000:]}")
    return [ready, answered, acknowledged]


def _answers(port: int) -> bool:
    try:
        wire = Wire(("127.0.0.1", port))
    except OSError:
        return False
    try:
        wire.call(requests.api_versions())
    except (OSError, WrongAnswer):
        return False
    finally:
        wire.close()
    return True


def _first_record(port: int, topic: str, end: float) -> None:
    """Create the topic if need be and write one record, trying again until it is acknowledged."""
    batch = batches.uniform(1, 100, time.time_ns() // 1_000_000)
    shape = requests.produce_shape(topic, 7)
    wire = Wire(("127.0.0.1", port))
    try:
        wire.call(requests.create_topic(topic, 1, {}))
        while True:
            answer = wire.call(requests.produce(topic, 0, batch, -1, 1))
            if not shape.fields.unpack_from(answer, shape.at - 8)[0]:
                return
            if time.monotonic() > end:
                raise SystemExit("no record was acknowledged")
            time.sleep(0.002)
    finally:
        wire.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=TIMEOUT_S)
        return
    process.kill()
    process.communicate()


def _one(name: str, start: str, data: Path, port: int) -> list[float | None]:
    if name == "kafka":
        broker = kafka.Kafka(data, port)
        broker.format()
        command = kafka.java("kafka.Kafka", str(data / "server.properties"), heap="1g")
    else:
        command = appliance_command(data, port)
    return moments(command, port, "first-" + start.split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka in turn")
    parser.add_argument("--only-kafka", action="store_true", help="Apache Kafka alone")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    names = ["penstock"] * (not options.only_kafka)
    if options.kafka or options.only_kafka:
        kafka.fetch()
        names.append("kafka")
    byte_compile()
    seen: dict[tuple[str, str], list[list[float | None]]] = {}
    for _ in range(options.repeat):
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                port = kafka.free_port()
                for start in ("first start", "second start"):
                    took = _one(name, start, Path(folder) / "data", port)
                    seen.setdefault((name, start), []).append(took)
    lines = []
    for (name, start), runs in seen.items():
        columns = [[run[i] for run in runs] for i in range(len(STEPS))]
        cells = [
            tables.spread([value for value in column if value is not None]) for column in columns
        ]
        lines.append([name, start, *cells])
    head = ["broker", "start", *(f"{step}, s" for step in STEPS)]
    print(tables.render(head, lines, markdown=options.markdown, left=2))


if __name__ == "__main__":
    main()
