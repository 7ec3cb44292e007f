"""`penstock status`."""

import time
from typing import Final

import click

from appliance.shell.version import current
from console.flags.connection import connected
from console.flags.folder import announce_folder, profile_named
from console.flags.output import formatted
from console.flags.units import Seconds
from console.flags.watch import watched
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.profiles import where
from console.model.local.standing import Standing, Watch, at_folder
from console.model.storage.data_folder import Folder, usual
from console.show.output import emit_one
from console.show.standing import lines, row

_WATCH: Final = "penstock.standing"


@click.command("status")
@click.option(
    "--data", metavar="DIR", default="",
    help="The data folder of the appliance.  [default: that of --profile]",
)  # fmt: skip
@click.option(
    "--over", type=Seconds(0, 3600), default=1.0, metavar="TIME", show_default="1s",
    help="Measure rates over this time from now; 0: since the start.",
)  # fmt: skip
@formatted
@connected
@watched
@click.pass_context
def command(ctx: click.Context, link: Link, data: str, over: float, output: str) -> int:
    """Show the state of an appliance on one screen: problems, cluster, processes, traffic, clients,
    lagging groups, transactions that hold records back, disks and the latest warnings.

    For an appliance of this host, most is read from its shared memory without a request; this needs
    its user or root. For any other Kafka broker the state comes from requests. Nothing is changed.

    Exit code 0: it serves and all is well; 1: it serves, degraded; 2: it does not serve or does not
    run. A usage error is 2 as well, with nothing on stdout.

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
        emit_one(row(found, current()), output, name="state")
    return found.code


def _look(ctx: click.Context, link: Link, data: str, over: float) -> Standing:
    """The next look of this command's watch, which is made again until its appliance runs."""
    watch: Watch | None = ctx.meta.get(_WATCH)
    if watch is None:
        addressed = ctx.params.get("bootstrap")
        if not data and not addressed and (said := where(None, profile_named())).data:
            data = announce_folder(Folder(said.data, f"of profile {said.name}"))
        try:
            there = at_folder(data, link) if data and not addressed else link
        except Failure as lost:
            return Standing(data, time.time(), lost)
        ctx.meta[_WATCH] = watch = Watch(there, data, usual=usual().path)
        if over and watch.read_counters():
            time.sleep(over)
    return watch.read_standing()
