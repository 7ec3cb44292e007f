"""`penstock config list`."""

import click

from appliance.cli.config_target import Target, in_force, settings_of, targeted
from appliance.cli.exits import OK
from appliance.cli.link import Link, connected
from appliance.cli.output import emit, formatted, say
from appliance.cli.watch import watched


@click.command("list")
@targeted
@click.option("-a", "--all", "everything", is_flag=True, help="Those with their default too.")
@formatted
@connected
@watched
def command(link: Link, target: Target | None, everything: bool, output: str) -> int:
    """Show what somebody has set: in a file, on the command line, or at run time.

    \b
    penstock config list
    penstock config list -t orders --all
    """
    asked = in_force(link, target)
    rows = settings_of(link, asked)
    chosen = [row for row in rows if everything or row["source"] != "default"]
    if asked.kind != 4 and not everything:
        chosen = [row for row in chosen if row["source"] in ("topic", "group")]
    if not chosen:
        say(f"nothing is set for {asked}; --all shows the defaults")
    emit(chosen, output, narrow=("key", "value", "source", "default"), name="key")
    return OK
