"""Exactly once beside at least once: the demo's jobs over the whole year, both deliveries in turn.

    python -m benchmarks.deliveries                        all jobs that stream into a topic
    python -m benchmarks.deliveries --repeat 1 --jobs totals      a short look

Rows that are read per second, and per second of CPU of all that is involved (which a busy machine
shows, too), from the beginning of a job that reads what is there to its end, on one local session
that has run it before; then the milliseconds of a micro-batch that has next to nothing to do, where
the transaction itself shows. Both must derive as many rows.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import spark_local
from benchmarks import machine, procstat, tables
from console.commands.demo.data import folder
from console.commands.demo.load import create, load
from console.model.asking.link import Link
from penstock.local import Appliance
from spark_local.board import Board
from spark_local.client_settings import ClientSettings
from spark_local.engine import jars, session
from spark_local.engine.attempt import Attempt
from spark_local.folder import JobFolder
from spark_local.job import AT_LEAST_ONCE, EXACTLY_ONCE, Job, Place
from spark_local.jobfile import load as load_job

JOBS: Final = ("totals", "delays", "cancelled", "enriched", "weather")
DELIVERIES: Final = (EXACTLY_ONCE, AT_LEAST_ONCE)
SMALL: Final = 3500
"""Records of each of the small batches: some hundred batches in the year."""


class WrongCount(Exception):
    """The two deliveries derived different rows: the figures would mean nothing."""


class Figures(NamedTuple):
    """Of one run. cpu_s: of Spark, the runner's side and the appliance together."""

    took_s: float
    cpu_s: float
    rows: int
    batches: int


class Bench:
    """Runs a job in either delivery, each time from the beginning into a topic of its own."""

    def __init__(self, spark: Any, bootstrap: str, place: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._place = place
        self._numbers = count()
        self._derived: dict[str, int] = {}

    def run(self, job: Job, delivery: str) -> Figures:
        """One run from the beginning to the end."""
        name = f"{job.name}-{next(self._numbers)}"
        sink = replace(job.sink, delivery=delivery, place=Place(topic=name))
        mine = replace(job, name=name, sink=sink, trigger_ms=None)
        place = JobFolder(self._place / name)
        place.path.mkdir()
        board = Board(place, None, 0)
        began, spent = time.perf_counter(), procstat.cpu_seconds(os.getpid())
        kafka = ClientSettings(self._bootstrap)
        Attempt(self._spark, mine, place, kafka, board).run()
        took = time.perf_counter() - began
        spent = procstat.cpu_seconds(os.getpid()) - spent
        told = board.content["progress"]
        if self._derived.setdefault(job.name, told["rows_out"]) != told["rows_out"]:
            raise WrongCount(f"{job.name}: {told['rows_out']} rows, {self._derived} before")
        return Figures(took, spent, told["rows_in"], told["batch"] + 1)


def rates(bench: Bench, names: list[str], repeat: int) -> list[list[str]]:
    """A row of the table for each job: rows/s of both and the ratio. One round does not count."""
    rows = []
    for name in names:
        found = alternate(bench, job_file(name), repeat)
        for what, figure in (
            ("rows/s", lambda run: run.rows / run.took_s),
            ("rows per CPU-second", lambda run: run.rows / run.cpu_s),
        ):
            values = [[figure(run) for run in found[one]] for one in DELIVERIES]
            cells = [tables.spread(some) for some in values]
            rows.append([f"{name}, {what}", *cells, tables.ratio(*values), "≥ 0.9"])
            print(*rows[-1], sep="  ", flush=True)
    return rows


def small(bench: Bench, repeat: int) -> list[list[str]]:
    """The row of the table about many small batches: ms of each."""
    job = job_file("cancelled")
    sources = tuple(replace(one, max_records=SMALL) for one in job.sources)
    found = alternate(bench, replace(job, name="small", sources=sources), repeat)
    each = [[1000 * run.took_s / run.batches for run in found[one]] for one in DELIVERIES]
    cells = [tables.spread(values) for values in each]
    row = [f"a micro-batch of {SMALL:,} records, ms", *cells, tables.ratio(*each), ""]
    print(*row, sep="  ", flush=True)
    return [row]


def alternate(bench: Bench, job: Job, repeat: int) -> dict[str, list[Figures]]:
    """`repeat` rounds after one that does not count; each begins with the other delivery."""
    found: dict[str, list[Figures]] = {one: [] for one in DELIVERIES}
    for turn in range(repeat + 1):
        for delivery in DELIVERIES if turn % 2 else reversed(DELIVERIES):
            figures = bench.run(job, delivery)
            if turn:
                found[delivery].append(figures)
    return found


def job_file(name: str) -> Job:
    """Of the jobs that people copy."""
    assert spark_local.__file__
    return load_job(Path(spark_local.__file__).parent / "jobs" / f"{name}.toml")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.deliveries", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--jobs", nargs="*", default=JOBS, choices=JOBS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as temporary:
        place = Path(temporary)
        with Appliance(place / "data") as appliance:
            link = Link(appliance.bootstrap, {}, 60.0)
            create(link)
            load(link, folder(), lambda *_: None)
            spark = session.start_session("local[2]", place / "spark")
            try:
                bench = Bench(spark, appliance.bootstrap, place)
                rows = rates(bench, list(options.jobs), options.repeat)
                rows += small(bench, options.repeat)
            finally:
                session.end_session(spark)
    head = ("job", *DELIVERIES, "ratio", "goal")
    print(f"\n{machine.state()}; medians (range)\n")
    print(tables.render(head, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
