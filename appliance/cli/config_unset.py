"""`penstock config unset`."""

import click

from appliance.cli.complete import setting_names
from appliance.cli.config_change import change
from appliance.cli.config_target import DELETE, Target, targeted
from appliance.cli.confirm import dry_run_option, undoable
from appliance.cli.exits import usage
from appliance.cli.link import Link, connected
from appliance.cli.output import formatted


@click.command("unset")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=setting_names)
@targeted
@undoable
@dry_run_option
@formatted
@connected
def command(
    link: Link, keys: tuple[str, ...], target: Target | None, dry_run: bool, output: str
) -> int:
    """Let settings have their default again: that of the broker, of its file, or our own.

    \b
    penstock config unset log.retention.ms
    penstock config unset retention.ms flush.policy -t orders
    """
    if any("=" in key for key in keys):
        raise usage("unset takes keys only, without =VALUE")
    changes = dict.fromkeys(keys, (DELETE, None))
    return change(link, target, changes, dry_run=dry_run, output=output)
