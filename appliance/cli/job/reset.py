"""`penstock job reset`."""

import click

from appliance.cli.confirm import confirm_names, dry_run_option, yes_option
from appliance.cli.exits import OK
from appliance.cli.job.common import ENDED, in_folder, settle, timeout_option
from appliance.cli.output import Row, emit, formatted, say
from spark_local.folder import RUNNING, STOPPED, Folder

_MEANS = {
    "checkpoint": "how far it read, and its state (windows, counts, joins)",
    "schemas.json": "the columns that were inferred",
    "dead.json": "the count of dead letters",
}


@click.command("reset")
@click.argument("name", metavar="NAME")
@yes_option
@dry_run_option
@timeout_option
@formatted
@in_folder
def command(
    folder: Folder, name: str, yes: bool, dry_run: bool, timeout: float, output: str
) -> int:
    """Let a job forget how far it came: it begins again where its file says ("start"), and writes
    what it derives from there once more. Topics stay as they are.

    \b
    penstock job reset delays --dry-run
    penstock job reset delays
    """
    place = folder.get(name)
    rows: list[Row] = [
        {"forgets": _MEANS[kind], "name": kind, "bytes": size}
        for kind, size in place.remembers().items()
    ]
    if dry_run or not rows:
        say(f"Job {name} {'would forget' if rows else 'has nothing to forget'}.")
        emit(rows, output)
        return OK
    for row in rows:
        say(f"  {row['forgets']}: {row['bytes']:,} bytes")
    confirm_names(f"Job {name} forgets this", [name], yes=yes)
    runs = place.wish().state == RUNNING
    if runs and folder.runner_pid() is not None:
        settle(folder, [(place, place.wish_for(STOPPED))], timeout, until=ENDED)
    place.forget()
    if runs:
        settle(folder, [(place, place.wish_for(RUNNING))], timeout)
    emit(rows, output)
    return OK
