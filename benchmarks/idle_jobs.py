"""The runner of jobs with seven jobs that have nothing to do, and one record from end to end.

    python -m benchmarks.idle_jobs                     as `penstock job serve` runs them
    python -m benchmarks.idle_jobs --trigger "1 s"     with another trigger in the job files

Four jobs pass rows on and three count by key, all exactly once. Seconds from the command to a job's
first derived row that is committed; then, at rest, the processor time and the memory of the runner,
by process; then single records, one after another: ms from before each is produced (acks=all) until
a consumer of committed records has the row, and the processor time of a record.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, procstat, tables
from penstock.client import connect
from penstock.local import Appliance

JOBS: Final = 7
LIMIT_S: Final = 300.0
PASSES: Final = 'sql = "SELECT id, n FROM events WHERE n >= 0"'
COUNTS: Final = 'sql = "SELECT id, count(*) AS n FROM events GROUP BY id"'
JOB: Final = """
{sql}
trigger = "{trigger}"
[sources.events]
topic = "in-{number}"
schema = "id STRING, n BIGINT"
[sink]
topic = "out-{number}"
key = "id"
mode = "update"
delivery = "exactly-once"
"""


class Runner:
    """`penstock job serve` over jobs of its own. close: ends it in order."""

    def __init__(self, bootstrap: str, place: Path, trigger: str) -> None:
        self._words = os.environ | {"PENSTOCK_BOOTSTRAP": bootstrap, "PENSTOCK_JOBS": str(place)}
        files = place.with_name("files")
        files.mkdir()
        for number in range(JOBS):
            sql = PASSES if number % 2 == 0 else COUNTS
            file = files / f"job-{number}.toml"
            file.write_text(JOB.format(sql=sql, trigger=trigger, number=number))
            self._run("add", str(file), "--no-wait")
        with (place.with_name("serve.log")).open("wb") as log:
            self.process = subprocess.Popen(
                self._line("serve"), env=self._words, stdout=log, stderr=log
            )

    def _line(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "console", "job", *words]

    def _run(self, *words: str) -> None:
        subprocess.run(self._line(*words), env=self._words, check=True, capture_output=True)

    def close(self) -> None:
        """Every job ends after its batch."""
        self.process.terminate()
        self.process.wait(LIMIT_S)


class Rows:
    """Derived rows as a consumer of committed records sees them."""

    def __init__(self, link: Any, topics: list[str]) -> None:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": link.bootstrap, "group.id": "bench",
                    "isolation.level": "read_committed", "fetch.wait.max.ms": 500}  # fmt: skip
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(one, 0, 0) for one in topics])

    def next_row(self) -> str:
        """The topic of the next row. Raises SystemExit when none comes in time."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            message = self._consumer.poll(1.0)
            if message is not None and not message.error():
                return str(message.topic())
        raise SystemExit("no row came in time")

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close()


def kind(pid: int) -> str:
    """The part of the runner that a process is."""
    line = Path(f"/proc/{pid}/cmdline").read_bytes()
    return next((word for mark, word in (
        (b"SparkSubmit", "Spark's JVM"), (b"client_process", "Kafka clients"),
        (b"console", "runner"),
    ) if mark in line), "others")  # fmt: skip


def own_cpu(pid: int) -> float:
    """Seconds of processor time of one process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_pss(pid: int) -> float:
    """MB of memory of one process, shared pages by share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(one.split()[1]) for one in lines if one.startswith("Pss:")) * 1024 / 1e6


def rest(root: int, seconds: float) -> list[list[str]]:
    """A row for each kind of process, and one for all: % of a core, and MB."""
    pids = procstat.tree(root)
    before = {pid: own_cpu(pid) for pid in pids}
    began = time.monotonic()
    time.sleep(seconds)  # the measurement is the waiting
    passed = time.monotonic() - began
    found: dict[str, list[float]] = {}
    for pid in pids:
        cpu, memory = (own_cpu(pid) - before[pid]) / passed * 100, own_pss(pid)
        for one in (kind(pid), "all"):
            sums = found.setdefault(one, [0.0, 0.0])
            sums[0] += cpu
            sums[1] += memory
    goals = {"all": ["≤ 3", "≤ 600"]}
    return [
        [f"at rest, {one}", f"{cpu:.1f}", f"{memory:.0f}", *goals.get(one, ["", ""])]
        for one, (cpu, memory) in found.items()
    ]


def singles(producer: Any, rows: Rows, root: int, count: int) -> tuple[list[float], float]:
    """(ms of each record from end to end, ms of processor time of a record)."""
    found, spent = [], procstat.cpu_seconds(root)
    for number in range(count):
        began = time.perf_counter()
        producer.produce("in-0", b'{"id": "%d", "n": 1}' % number)
        producer.flush(LIMIT_S)
        assert rows.next_row() == "out-0"
        found.append((time.perf_counter() - began) * 1000)
    return found, (procstat.cpu_seconds(root) - spent) / count * 1000


def measure(place: Path, trigger: str, seconds: float, count: int) -> None:
    """Prints the tables."""
    with Appliance(place / "data") as appliance:
        link = connect(appliance.bootstrap)
        topics = [f"{way}-{number}" for way in ("in", "out") for number in range(JOBS)]
        from confluent_kafka.admin import NewTopic

        admin = link.admin()
        for made in admin.create_topics([NewTopic(one, 1, 1) for one in topics]).values():
            made.result(60)
        with link.producer(linger_ms=0) as producer:
            for number in range(JOBS):
                producer.produce(f"in-{number}", b'{"id": "first", "n": 0}')
            producer.flush(LIMIT_S)
            began = time.monotonic()
            runner = Runner(appliance.bootstrap, place / "jobs", trigger)
            rows = Rows(link, topics[JOBS:])
            try:
                rows.next_row()
                first = time.monotonic() - began
                for _ in range(JOBS - 1):
                    rows.next_row()
                every = time.monotonic() - began
                singles(producer, rows, runner.process.pid, 20)  # the JVM compiles
                resting = rest(runner.process.pid, seconds)
                took, cpu_ms = singles(producer, rows, runner.process.pid, count)
            finally:
                rows.close()
                runner.close()
    print(f"\n{machine.state()}; trigger {trigger}\n")
    head = ["", "CPU % of a core", "PSS MB", "goal, %", "goal, MB"]
    print(tables.render(head, resting, markdown=True))
    ranked = sorted(took)
    lines = [
        ["first row of the first job, s", f"{first:.1f}", ""],
        [f"first row of all {JOBS} jobs, s", f"{every:.1f}", ""],
        ["one record, p50 ms", f"{statistics.median(took):.0f}", "≤ 300"],
        ["one record, p90 ms", f"{ranked[int(count * 0.9)]:.0f}", ""],
        ["processor time of a record, ms", f"{cpu_ms:.0f}", ""],
    ]
    print()
    print(tables.render(["", "measured", "goal"], lines, markdown=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.idle_jobs", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--trigger", default="250 ms")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--records", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as temporary:
        measure(Path(temporary), options.trigger, options.seconds, options.records)


if __name__ == "__main__":
    main()
