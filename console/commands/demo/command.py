"""`penstock demo`: an appliance, real data, jobs over it, and every derived figure compared.

Without Java or PySpark the data goes in through one stock client and out through another instead.
Narration and pictures go to stderr, the table of results to stdout.
"""

import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import click

from console.commands.demo import round_trip
from console.commands.demo.data import folder
from console.commands.demo.jobs import Jobs, unavailable
from console.commands.demo.load import SILENCE_S, create
from console.commands.demo.next_steps import next_steps, where_time_went
from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.model.asking.link import Link
from console.show.output import print_note
from penstock.local import Appliance, ApplianceError


@click.command("demo")
@click.option(
    "--data", metavar="DIR", help="Keep the data in this folder.  [default: a temporary folder]"
)
@click.option("--keep", is_flag=True, help="Keep the appliance and the jobs running afterwards.")
@click.option("--no-jobs", is_flag=True, help="Run without Spark: write, read back, compare.")
@click.option(
    "--speed", type=click.FloatRange(1, 1e9), metavar="N",
    help="Replay the year N times faster than it happened, repeatedly, until Ctrl-C.",
)  # fmt: skip
@formatted
def command(data: str | None, keep: bool, no_jobs: bool, speed: float | None, output: str) -> int:
    """Start an appliance, load 336,776 flights with their weather, planes, airports and airlines,
    run seven jobs over them on a local Spark, show the results and compare them with figures
    computed from the CSV files. Exit code 4 when a figure differs.

    \b
    penstock demo
    penstock demo --data ./flights --keep
    penstock demo --speed 3600                 an hour of flights every second
    penstock demo --no-jobs                    needs no Java
    """
    began = time.monotonic()
    signal.signal(signal.SIGTERM, _end)
    source = folder()
    reason = None if no_jobs else unavailable()
    if speed and (no_jobs or reason):
        raise Failure("--speed shows jobs, and there are none", reason or "leave --no-jobs out")
    place = Path(data) if data else Path(tempfile.mkdtemp(prefix="penstock-demo-")) / "data"
    appliance = Appliance(place.absolute(), own_session=True, outlives=keep)
    jobs: Jobs | None = None
    done = failed = False
    try:
        _start(appliance)
        link = Link(appliance.bootstrap, {}, SILENCE_S)
        create(link)
        if reason or no_jobs:
            code = round_trip.run(link, source, output)
            if reason:
                print_note(f"The jobs of the demo were left out: {reason}.")
        else:
            jobs = Jobs(place.absolute(), appliance.bootstrap, outlives=keep)
            _usable(jobs.start_runner)
            code = _derive(link, source, jobs, began, speed, output)
        done = code == OK
        kept = place if data or keep else None
        print_note(next_steps(appliance, jobs, kept, running=keep and done))
        return code
    except Failure:
        failed = True
        raise
    finally:
        if not (keep and done):
            if jobs:
                jobs.close()
            appliance.close()
            if not data:  # what the runner logged, which a hint may name, outlives a failure
                shutil.rmtree(place if failed and jobs else place.parent, ignore_errors=True)


def _end(number: int, _: FrameType | None) -> None:
    """SIGTERM ends what the demo started, as Ctrl-C does."""
    raise SystemExit(128 + number)


def _start(appliance: Appliance) -> None:
    began = time.monotonic()
    try:
        _usable(appliance.start)
    except ApplianceError as problem:
        said, _, remedy = problem.reason.partition(": stop that one first")
        hint = "choose another folder with --data" if remedy or "in use" in said else ""
        raise Failure(said, hint, name="CANNOT_START") from None
    took_ms = round((time.monotonic() - began) * 1000)
    print_note(
        f"An appliance listens on {appliance.bootstrap}, ready in {took_ms} ms; "
        f"its data: {appliance.data_dir}"
    )


def _usable(start: Callable[[], object]) -> None:
    """Begin something that writes to the folder. Raises Failure when it cannot."""
    try:
        start()
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        raise Failure(
            f"{where}{problem.strerror or problem}",
            "the demo writes beside its data too: choose another folder with --data",
            name="CANNOT_START",
        ) from None


def _derive(
    link: Link, source: Path, jobs: Jobs, began: float, speed: float | None, output: str
) -> int:
    from console.commands.demo.derive import Derivation

    run = Derivation(link, source, jobs, began)
    if speed:
        return run.replay(speed)
    code = run.run(output)
    print_note(where_time_went(run.marks, time.monotonic() - began))
    return code
