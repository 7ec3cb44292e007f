"""`penstock job restart`."""

import click

from appliance.cli.exits import FAILED, OK
from appliance.cli.job.add import narrow
from appliance.cli.job.common import (
    all_option,
    chosen,
    in_folder,
    settle,
    timeout_option,
    wait_option,
)
from appliance.cli.output import emit, formatted
from spark_local.folder import RUNNING, Folder


@click.command("restart")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@all_option
@wait_option
@timeout_option
@formatted
@in_folder
def command(
    folder: Folder,
    names: tuple[str, ...],
    everyone: bool,
    no_wait: bool,
    timeout: float,
    output: str,
) -> int:
    """Stop jobs, each after its batch, and start them again from there.

    \b
    penstock job restart delays
    """
    places = chosen(folder, names, everyone)
    pairs = [(place, place.wish_for(RUNNING)) for place in places]
    rows = settle(folder, pairs, timeout, wait=not no_wait)
    emit(rows, output, narrow=narrow(rows), name="job")
    return FAILED if any(row["state"] == "failed" for row in rows) else OK
