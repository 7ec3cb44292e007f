"""`penstock job serve`: the runner in this process."""

from functools import partial

import click

from console.flags.connection import connected
from console.flags.jobs import in_folder, master_option, memory_option
from console.flags.private import private
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.jobs.jobs import check_usable, settings_in_runner, settings_of
from console.show.output import print_note
from spark_local.folder import Folder


@click.command("serve")
@master_option
@memory_option
@connected
@in_folder
@private
def command(folder: Folder, link: Link, master: str, memory: str) -> int:
    """Run all jobs of the folder until Ctrl-C; each then stops after its current batch.

    The runner starts and stops jobs as the other commands request, restarts failed jobs, and waits
    while the appliance is unreachable. Spark starts with the first job.

    \b
    penstock job serve
    penstock job serve --jobs /var/lib/penstock/jobs --memory 2g
    """
    from spark_local.engine.runner import Runner

    kafka = settings_of(link)
    check_usable(kafka)
    folder.path.mkdir(parents=True, exist_ok=True)  # a folder that cannot be is said at once
    print_note(f"Jobs of {folder.path} run against {link.bootstrap}; Ctrl-C ends them in order.")
    Runner(folder, kafka, master, memory, partial(settings_in_runner, link)).run()
    return OK
