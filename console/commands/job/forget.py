"""`penstock job reset` and `remove`: irrecoverable, so the name is typed."""

import click

from console.commands.job.wish import NO_RUNNER
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.jobs import in_folder, timeout_option
from console.flags.output import formatted
from console.model import jobs
from console.model.failure import OK
from console.show.output import Row, emit, print_note
from spark_local.folder import RUNNING, Folder


@click.command("reset")
@click.argument("name", metavar="NAME")
@yes_option
@dry_run_option
@timeout_option
@formatted
@in_folder
def reset(folder: Folder, name: str, yes: bool, dry_run: bool, timeout: float, output: str) -> int:
    """Reset the progress of a job: it starts again where its file says ("start") and derives
    everything from there once more. Topics do not change.

    \b
    penstock job reset delays --dry-run
    penstock job reset delays
    """
    place = folder.find_job(name)
    rows: list[Row] = [
        {"forgets": jobs.REMEMBERED[kind], "name": kind, "bytes": size}
        for kind, size in place.remembers().items()
    ]
    if dry_run or not rows:
        print_note(f"Job {name} {'would forget' if rows else 'has nothing to forget'}.")
        emit(rows, output)
        return OK
    for row in rows:
        print_note(f"  {row['forgets']}: {row['bytes']:,} bytes")
    confirm_names(f"Job {name} loses this", [name], yes=yes)
    if place.read_wish().state == RUNNING and not jobs.has_runner(folder):
        print_note(NO_RUNNER)
    jobs.reset(folder, place, timeout)
    emit(rows, output)
    return OK


@click.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@dry_run_option
@timeout_option
@formatted
@in_folder
def remove(
    folder: Folder, names: tuple[str, ...], yes: bool, dry_run: bool, timeout: float, output: str
) -> int:
    """Stop jobs and delete their files, progress and logs. The records they wrote stay.

    \b
    penstock job remove delays
    """
    places = [folder.find_job(name) for name in dict.fromkeys(names)]
    if not dry_run:
        listed = ", ".join(place.name for place in places)
        confirm_names(f"This deletes {listed} with its progress", list(names), yes=yes)
        jobs.remove(folder, places, timeout)
    done = "would be removed" if dry_run else "removed"
    emit([{"job": place.name, "status": done} for place in places], output, name="job")
    return OK
