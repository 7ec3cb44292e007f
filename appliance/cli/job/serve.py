"""`penstock job serve`: the runner in this process."""

import click

from appliance.cli.exits import OK
from appliance.cli.job.common import in_folder, master_option, memory_option
from appliance.cli.link import Link, connected
from appliance.cli.output import say
from spark_local.folder import Folder


@click.command("serve")
@master_option
@memory_option
@connected
@in_folder
def command(folder: Folder, link: Link, master: str, memory: str) -> int:
    """Keep all jobs of the folder running until Ctrl-C; each then ends after its batch.

    It starts and stops jobs as the other commands say, starts what failed again, and waits for an
    appliance that is away. Its Spark starts with the first job.

    \b
    penstock job serve
    penstock job serve --jobs /var/lib/penstock/jobs --memory 2g
    """
    from spark_local.engine.runner import Runner

    say(f"Jobs of {folder.path} run against {link.bootstrap}; Ctrl-C ends them in order.")
    Runner(folder, link.bootstrap, master, memory).run()
    return OK
