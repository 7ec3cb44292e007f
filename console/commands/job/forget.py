"""`penstock job reset` and `remove`: irrecoverable, so the name is typed."""

from typing import Final

import click

from console.commands.job.wish import NO_RUNNER
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.jobs import in_folder, timeout_option
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.jobs import jobs
from console.model.jobs.job_groups import JobGroup, delete_group, find_group
from console.show.output import Row, emit, print_note
from spark_local.folder import RUNNING, Folder

_LIMIT_S: Final = 120.0
"""Seconds for the runner to end the jobs."""


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
@click.option("--keep-group", is_flag=True, help="Keep the committed offsets of the jobs.")
@yes_option
@dry_run_option
@formatted
@connected
@in_folder
def remove(
    folder: Folder,
    link: Link,
    names: tuple[str, ...],
    keep_group: bool,
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Stop jobs and delete their files, progress and logs, and the consumer groups of their names,
    which show their position. The records they wrote stay.

    \b
    penstock job remove delays
    """
    places = [folder.find_job(name) for name in dict.fromkeys(names)]
    groups = {} if keep_group else {one.name: find_group(link, one) for one in places}
    stays = {name: group.unknown for name, group in groups.items()}
    if not dry_run:
        what = ", ".join(_named(place.name, groups.get(place.name)) for place in places)
        confirm_names(f"This deletes {what} with its progress", list(names), yes=yes)
        jobs.remove(folder, places, max(_LIMIT_S, link.timeout_s))
        stays = {name: delete_group(group) for name, group in groups.items()}
    for name, why in stays.items():
        if why:
            print_note(f"Consumer group {name} stays: {why}; penstock group delete {name}")
    done = "would be removed" if dry_run else "removed"
    deleted = {name: group.offsets for name, group in groups.items() if not stays[name]}
    rows: list[Row] = [
        {"job": place.name, "status": done, "offsets": deleted.get(place.name, 0)}
        for place in places
    ]
    emit(rows, output, narrow=("job", "status"), name="job")
    return OK


def _named(job: str, group: JobGroup | None) -> str:
    offsets = group.offsets if group is not None else 0
    return (
        f"{job} (and {offsets} committed offset{'' if offsets == 1 else 's'})" if offsets else job
    )
