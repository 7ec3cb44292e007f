"""`penstock job logs`."""

import sys
import time
from collections import deque
from pathlib import Path

import click

from console.flags.jobs import in_folder
from console.model.failure import OK
from console.show.output import plain, say
from spark_local.folder import Folder


@click.command("logs")
@click.argument("name", metavar="NAME")
@click.option("-n", "--lines", type=click.IntRange(1), default=50, help="How many of the last.")
@click.option("-f", "--follow", is_flag=True, help="Go on as more comes, until Ctrl-C.")
@click.option("--runner", is_flag=True, help="Spark's own log, which all jobs share.")
@in_folder
def command(folder: Folder, name: str, lines: int, follow: bool, runner: bool) -> int:
    """Show what happened to a job: states, failures with their causes, tables, dead letters.

    \b
    penstock job logs delays
    penstock job logs delays -f
    """
    place = folder.get(name)
    file = folder.runner / "spark.log" if runner else place.log_file
    if not file.exists():
        say(f"Nothing was written to {file} yet.")
        if not follow:
            return OK
    at = _last(file, lines)
    while follow:
        at = _since(file, at)
        sys.stdout.flush()
        time.sleep(0.3)
    return OK


def _last(file: Path, lines: int) -> int:
    """Print the last lines: where the file ended."""
    if not file.exists():
        return 0
    with file.open(errors="replace") as opened:
        for line in deque(opened, lines):
            print(plain(line.rstrip("\n")))
        return opened.tell()


def _since(file: Path, at: int) -> int:
    if not file.exists() or file.stat().st_size < at:
        return 0
    with file.open("rb") as opened:
        opened.seek(at)
        for line in opened.read().decode(errors="replace").splitlines():
            print(plain(line))
        return opened.tell()
