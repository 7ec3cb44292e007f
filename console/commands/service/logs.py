"""`penstock service logs`."""

import os
import shutil

import click

from console.flags.service import for_user
from console.model.asking.failure import Failure
from console.model.service.place import APPLIANCE, JOBS


@click.command("logs")
@for_user
@click.option("-f", "--follow", is_flag=True, help="Follow new lines.")
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=100, metavar="N",
    help="Number of latest lines.  [default: 100]",
)  # fmt: skip
@click.option("--jobs", is_flag=True, help="Show the log of the service that runs jobs.")
def command(for_user: bool, follow: bool, lines: int, jobs: bool) -> None:
    """Show the service's log from systemd's journal.

    \b
    penstock service logs -f
    penstock service logs --user -n 20
    """
    program = shutil.which("journalctl")
    if program is None:
        raise Failure("there is no journalctl here", "services need systemd")
    unit = f"--{'user-' if for_user else ''}unit={JOBS if jobs else APPLIANCE}"
    words = [program, unit, f"--lines={lines}", "--quiet", "--output=short-iso"]
    os.execv(program, [*words, "--follow"] if follow else [*words, "--no-pager"])
