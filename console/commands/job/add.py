"""`penstock job add`."""

import click

from console.commands.job.wish import NO_RUNNER
from console.flags.confirm import dry_run_option
from console.flags.jobs import in_folder, timeout_option, wait_option
from console.flags.output import formatted
from console.model.asking.failure import FAILED, OK
from console.model.jobs.jobs import await_states, has_runner
from console.show.output import Row, emit, print_note, rows_of, telling
from spark_local.folder import RUNNING, STOPPED, Folder
from spark_local.job import Job


@click.command("add")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--stopped", is_flag=True, help="Add the job without starting it.")
@dry_run_option
@wait_option
@timeout_option
@formatted
@in_folder
def command(
    folder: Folder,
    files: tuple[str, ...],
    stopped: bool,
    dry_run: bool,
    no_wait: bool,
    timeout: float,
    output: str,
) -> int:
    """Check job files, copy them into the jobs folder and start them. A job of the same name is
    replaced and continues where it stopped.

    \b
    penstock job add delays.toml
    penstock job add *.toml --dry-run
    """
    from spark_local.jobfile import load

    jobs = [load(file) for file in files]
    if dry_run:
        emit([_row(job, folder) for job in jobs], output)
        return OK
    wished = STOPPED if stopped else RUNNING
    places = [folder.add(job, state=wished) for job in jobs]
    pairs = [(place, place.read_wish()) for place in places]
    if not has_runner(folder):
        print_note(NO_RUNNER)
    rows = rows_of(await_states(folder, pairs, timeout, wait=not no_wait))
    emit(rows, output, narrow=telling(rows), name="job")
    return FAILED if any(row["state"] == "failed" for row in rows) else OK


def _row(job: Job, folder: Folder) -> Row:
    there = any(one.name == job.name for one in folder.jobs())
    return {
        "job": job.name,
        "status": "would be replaced" if there else "would be added",
        "reads": [one.place.text for one in job.inputs],
        "writes": job.sink.place.text,
    }
