"""`penstock job stop`."""

import click

from appliance.cli.exits import OK
from appliance.cli.job.add import narrow
from appliance.cli.job.common import (
    ENDED,
    all_option,
    chosen,
    in_folder,
    settle,
    timeout_option,
    wait_option,
)
from appliance.cli.output import emit, formatted
from spark_local.folder import STOPPED, Folder


@click.command("stop")
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
    """Stop jobs. The batch that is being written is finished first, so nothing is written twice
    when they are started again.

    \b
    penstock job stop delays
    """
    places = chosen(folder, names, everyone)
    pairs = [
        (place, place.wish() if place.wish().state == STOPPED else place.wish_for(STOPPED))
        for place in places
    ]
    rows = settle(folder, pairs, timeout, until=ENDED, wait=not no_wait)
    emit(rows, output, narrow=narrow(rows), name="job")
    return OK
