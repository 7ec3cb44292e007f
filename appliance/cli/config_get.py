"""`penstock config get`."""

import click

from appliance.cli.complete import setting_names
from appliance.cli.config_target import Target, in_force, settings_of, targeted
from appliance.cli.exits import OK
from appliance.cli.link import Link, connected
from appliance.cli.output import emit, formatted


@click.command("get")
@click.argument("keys", nargs=-1, metavar="[KEY]...", shell_complete=setting_names)
@targeted
@formatted
@connected
def command(link: Link, keys: tuple[str, ...], target: Target | None, output: str) -> int:
    """Show values in force, with the place that each comes from and the default.

    \b
    penstock config get log.retention.ms
    penstock config get -t orders retention.ms flush.policy -o json
    penstock config get -g billing
    """
    rows = settings_of(link, in_force(link, target), keys)
    emit(rows, output, narrow=("key", "value", "source", "default"), name="key")
    return OK
