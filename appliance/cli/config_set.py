"""`penstock config set`."""

import re

import click

from appliance.cli.complete import setting_names
from appliance.cli.config_change import change
from appliance.cli.config_target import APPEND, SET, SUBTRACT, Target, targeted
from appliance.cli.confirm import dry_run_option, undoable
from appliance.cli.exits import usage
from appliance.cli.link import Link, connected
from appliance.cli.output import formatted
from appliance.cli.setting_values import in_unit

_KINDS = {"": SET, "+": APPEND, "-": SUBTRACT}


@click.command("set")
@click.argument(
    "pairs", nargs=-1, required=True, metavar="KEY=VALUE...", shell_complete=setting_names
)
@targeted
@undoable
@dry_run_option
@formatted
@connected
def command(
    link: Link, pairs: tuple[str, ...], target: Target | None, dry_run: bool, output: str
) -> int:
    """Change settings while the broker runs; without a target, the default of all brokers.

    Only what is named changes. KEY+=VALUE and KEY-=VALUE add to a list and take from it. Times and
    sizes may have a unit: 7d, 1h30m, 10MiB. A change can be undone, so nobody is asked.

    \b
    penstock config set log.retention.ms=7d --dry-run
    penstock config set cleanup.policy+=compact -t orders
    penstock config set consumer.session.timeout.ms=60000 -g billing
    """
    changes = {}
    for pair in pairs:
        found = re.fullmatch(r"([^=+\s-][^=\s]*?)([+-]?)=(.*)", pair, re.DOTALL)
        if found is None:
            raise usage(f"{pair!r} is not KEY=VALUE")
        changes[found[1]] = (_KINDS[found[2]], in_unit(found[1], found[3]))
    return change(link, target, changes, dry_run=dry_run, output=output)
