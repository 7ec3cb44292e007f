"""`penstock job remove`."""

import time

import click

from appliance.cli.confirm import confirm_names, dry_run_option, yes_option
from appliance.cli.exits import OK, UNREACHABLE, Failure
from appliance.cli.job.common import in_folder, timeout_option
from appliance.cli.output import emit, formatted
from spark_local.folder import REMOVED, Folder


@click.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@dry_run_option
@timeout_option
@formatted
@in_folder
def command(
    folder: Folder, names: tuple[str, ...], yes: bool, dry_run: bool, timeout: float, output: str
) -> int:
    """Stop jobs and delete them: the copy of the file, how far they came, their logs. What they
    wrote stays.

    \b
    penstock job remove delays
    """
    places = [folder.get(name) for name in dict.fromkeys(names)]
    if not dry_run:
        listed = ", ".join(place.name for place in places)
        confirm_names(f"This deletes {listed} and how far it came", list(names), yes=yes)
        for place in places:
            place.wish_for(REMOVED)
        end = time.monotonic() + timeout
        for place in places:
            while folder.runner_pid() is not None and place.path.exists():
                if time.monotonic() > end:
                    raise Failure(
                        f"the runner did not end job {place.name} in time",
                        "penstock job status shows how it is",
                        code=UNREACHABLE,
                        name="TIMED_OUT",
                    )
                time.sleep(0.1)
            if place.path.exists():
                folder.drop(place.name)
    done = "would be removed" if dry_run else "removed"
    emit([{"job": place.name, "status": done} for place in places], output, name="job")
    return OK
