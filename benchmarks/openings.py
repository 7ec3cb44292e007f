"""How long a node with very many partitions is away: its start, after an orderly end and after
kill -9, and the death of the I/O process alone; and the memory and descriptors that they take.

    python -m benchmarks.openings [--partitions 10000] [--kafka] [--tree TREE] [--markdown]

One record lies in twenty partitions of each thousand. Each time counts until a record is
acknowledged in the last partition: from exec, or from the kill. Apache Kafka has no process that
could die alone.
"""

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks import batches, kafka, machine, procstat, requests, tables
from benchmarks.compare.systems import System
from benchmarks.peer import Wire, WrongAnswer
from benchmarks.startup import byte_compile

OF_A_TOPIC: Final = 1000
"""Partitions: Apache Kafka refuses a request that would make ten times as many."""
WRITTEN: Final = 20
LIMIT_S: Final = 180.0
_IO_PROCESS: Final = "penstock-io-"


def wait_for_ack(port: int, topic: str, partition: int) -> None:
    """Write a record as often as it takes. Raises SystemExit when that is too long."""
    batch = batches.uniform(1, 100, time.time_ns() // 1_000_000)
    shape = requests.produce_shape(topic, 7)
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError, WrongAnswer), Wire(("127.0.0.1", port)) as wire:
            answer = wire.call(requests.produce(topic, partition, batch, -1, 1))
            if not shape.fields.unpack_from(answer, shape.at - 8)[0]:
                return
        time.sleep(0.002)
    raise SystemExit(f"no record was acknowledged in {LIMIT_S:.0f} s")


def fill(port: int, partitions: int) -> None:
    """Make the topics, and write to some partitions of each."""
    with Wire(("127.0.0.1", port)) as wire:
        for number in range(partitions // OF_A_TOPIC):
            wire.call(requests.create_topic(f"t{number}", OF_A_TOPIC, {}))
    for number in range(partitions // OF_A_TOPIC):
        for partition in range(0, OF_A_TOPIC, OF_A_TOPIC // WRITTEN):
            wait_for_ack(port, f"t{number}", partition)


def io_process(root: int) -> int | None:
    """The pid of the appliance's first I/O process."""
    for pid in procstat.tree(root):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().startswith(_IO_PROCESS):
                return pid
    return None


def descriptors(root: int) -> int:
    """Open files of the process of the tree that has most."""
    return max(len(os.listdir(f"/proc/{pid}/fd")) for pid in procstat.tree(root))


def measure(system: System, partitions: int) -> dict[str, float]:
    """The rows of one broker, in a folder of its own."""
    last = f"t{partitions // OF_A_TOPIC - 1}", OF_A_TOPIC - 1
    found: dict[str, float] = {}

    def timed(row: str, begin: Callable[[], object]) -> None:
        begun = time.monotonic()
        begin()
        wait_for_ack(system.port, *last)
        found[row] = time.monotonic() - begun
        print(f"{row}, {system.name}: {found[row]:.2f} s", file=sys.stderr, flush=True)

    system.start()
    fill(system.port, partitions)
    system.stop()
    timed("start after an orderly end, s", system.start)
    system.kill()
    timed("start after kill -9, s", system.start)
    alone = io_process(system.pid)
    if alone is not None:
        timed("after kill -9 of the I/O process, s", lambda: os.kill(alone, signal.SIGKILL))
    found["memory, PSS MB"] = procstat.memory(system.pid).pss / 1e6
    found["open files of one process"] = descriptors(system.pid)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.openings", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--partitions", type=int, default=10_000, help="a multiple of 1,000")
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka, too")
    parser.add_argument("--tree", type=Path, help="the appliance's sources, when not these")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    byte_compile(*([options.tree] if options.tree else []))
    names = ["penstock"]
    if options.kafka:
        kafka.fetch()
        names.append("kafka")
    found = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
            system = System(name, "D1", Path(folder) / name, options.tree)
            with contextlib.ExitStack() as stack:
                stack.callback(system.stop)
                found.append(measure(system, options.partitions))
    rows = [
        [row, *(f"{one[row]:,.2f}" if row in one else "–" for one in found)] for row in found[0]
    ]
    print(f"{machine.state()}; {options.partitions:,} partitions\n")
    print(tables.render(["", *names], rows, markdown=options.markdown, left=1))


if __name__ == "__main__":
    main()
