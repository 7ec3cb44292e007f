"""`penstock job logs`."""

import sys
import time

import click

from console.flags.jobs import in_folder
from console.model.asking.failure import OK
from console.model.jobs.jobs import broke
from console.model.local.tail import Tail
from console.show.figures import age
from console.show.output import plain, print_note
from spark_local.folder import Folder, JobFolder


@click.command("logs")
@click.argument("name", metavar="NAME")
@click.option("-n", "--lines", type=click.IntRange(1), default=50, help="Number of latest lines.")
@click.option("-f", "--follow", is_flag=True, help="Follow new lines until Ctrl-C.")
@click.option("--runner", is_flag=True, help="Show Spark's own log, which all jobs share.")
@click.option(
    "--error", is_flag=True, help="Show the last failure: its cause, then the whole stack trace."
)
@in_folder
def command(folder: Folder, name: str, lines: int, follow: bool, runner: bool, error: bool) -> int:
    """Show the log of a job: states, failures with their causes, tables, dead letters.

    \b
    penstock job logs delays
    penstock job logs delays -f
    penstock job logs delays --error
    """
    place = folder.find_job(name)
    if error:
        return _error(place)
    file = folder.runner / "spark.log" if runner else place.log_file
    if not file.exists():
        print_note(f"Nothing was written to {file} yet.")
        if not follow:
            return OK
    tail = Tail(file, lines)
    _print(tail)
    while follow:
        sys.stdout.flush()
        time.sleep(0.3)
        _print(tail)
    return OK


def _error(place: JobFolder) -> int:
    found = broke(place)
    if found is None:
        print_note(f"Job {place.name} has not failed.")
        return OK
    print(plain(found.cause))
    print_note(f"That was {age(time.time() - found.at_ms / 1000)} ago. {found.remedy or ''}")
    for line in found.trace.splitlines():
        print(plain(line))
    return OK


def _print(tail: Tail) -> None:
    for line in tail.read_lines():
        print(plain(line.text))
