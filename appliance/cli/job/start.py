"""`penstock job start`."""

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


@click.command("start")
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
    """Start jobs. One that runs already is left alone; one that failed or has ended begins again
    from its last batch.

    \b
    penstock job start delays
    penstock job start --all
    """
    pairs = []
    for place in chosen(folder, names, everyone):
        wish = place.wish()
        ended = place.state().get("state") in ("failed", "finished")
        running = wish.state == RUNNING and not ended
        pairs.append((place, wish if running else place.wish_for(RUNNING)))
    rows = settle(folder, pairs, timeout, wait=not no_wait)
    emit(rows, output, narrow=narrow(rows), name="job")
    return FAILED if any(row["state"] == "failed" for row in rows) else OK
