"""`penstock status`."""

import time
from typing import Final

import click

from appliance.shell.version import current
from console.commands.up import DEFAULT_DATA
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.failure import Failure
from console.model.link import Link
from console.model.standing import Standing, Watch, at_folder
from console.show.output import emit
from console.show.standing import lines, row

_WATCH: Final = "penstock.standing"


@click.command("status")
@click.option("--data", metavar="DIR", default="", help="Of the appliance in this data folder.")
@click.option(
    "--over", type=click.FloatRange(0, 3600), default=1.0, metavar="SECONDS", show_default=True,
    help="Rates of the next so many seconds; 0: since the start.",
)  # fmt: skip
@formatted
@connected
@watched
@click.pass_context
def command(ctx: click.Context, link: Link, data: str, over: float, output: str) -> int:
    """Show on one screen how an appliance stands: what is wrong, its cluster, processes, traffic,
    clients, groups that are behind, transactions that hold records back, disks, last warnings.

    Of an appliance of this host most is read from its memory without asking it, by the user that
    runs it, or root; of any other Kafka what requests tell is shown. Nothing is changed.

    Exit code 0: it serves, and all is well; 1: it serves, and something is degraded; 2: it does not
    serve, or is not there. A command line that is wrong is 2 as well, with nothing on stdout.

    \b
    penstock status
    penstock status -w
    penstock status -o json
    penstock status --data /srv/events
    """
    found = _look(ctx, link, data, over)
    if output in ("table", "wide"):
        print("\n".join(lines(found, current())))
    else:
        emit([row(found, current())], output, name="state")
    return found.code


def _look(ctx: click.Context, link: Link, data: str, over: float) -> Standing:
    """The next look of this command's watch, which is made again until its appliance runs."""
    watch: Watch | None = ctx.meta.get(_WATCH)
    if watch is None:
        try:
            there = at_folder(data, link) if data and not ctx.params.get("bootstrap") else link
        except Failure as lost:
            return Standing(data, time.time(), lost)
        ctx.meta[_WATCH] = watch = Watch(there, data, usual=DEFAULT_DATA)
        if over and watch.begin():
            time.sleep(over)
    return watch.look()
