"""`penstock job list`."""

import click

from appliance.cli.exits import OK
from appliance.cli.job.common import in_folder
from appliance.cli.job.status import seen
from appliance.cli.output import Row, emit, formatted, say
from spark_local.folder import Folder, JobFolder
from spark_local.mistakes import JobFileError


@click.command("list")
@formatted
@in_folder
def command(folder: Folder, output: str) -> int:
    """List the jobs of the folder, what each reads and writes, and how it is.

    \b
    penstock job list
    penstock job list -o json
    """
    rows = [_row(folder, place) for place in folder.jobs()]
    if not rows:
        say(f"There is no job in {folder.path}; penstock job add FILE makes one.")
    emit(rows, output, narrow=("job", "wish", "state", "reads", "writes"), name="job")
    return OK


def _row(folder: Folder, place: JobFolder) -> Row:
    row: Row = {"job": place.name, "wish": place.wish().state}
    row["state"] = seen(folder, place.state())["state"]
    try:
        job = place.job()
    except JobFileError as wrong:
        more: Row = {"kind": None, "reads": None, "writes": None, "description": str(wrong)}
        return row | more
    row["kind"] = "batch" if job.batch else "once" if job.once else "stream"
    row["reads"] = [one.place.text for one in job.inputs]
    row["writes"] = job.sink.place.text
    row["description"] = job.description or None
    return row
