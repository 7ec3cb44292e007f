"""`penstock job list`."""

import click

from console.commands.job.status import NOT_RUN
from console.flags.jobs import in_folder
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.jobs.jobs import listed
from console.show.output import emit, rows_of
from spark_local.folder import Folder


@click.command("list")
@formatted
@in_folder
@watched
def command(folder: Folder, output: str) -> int:
    """List the jobs of the folder with their sources, sinks and states.

    \b
    penstock job list
    penstock job list -o json
    """
    rows = rows_of(listed(folder))
    for row in rows if output in ("table", "wide") else ():
        row["state"] = row["state"] or NOT_RUN
    emit(
        rows,
        output,
        narrow=("job", "wanted", "state", "reads", "writes"),
        name="job",
        empty=f"There is no job in {folder.path}; penstock job add FILE makes one.",
    )
    return OK
