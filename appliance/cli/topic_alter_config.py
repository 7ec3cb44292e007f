"""`penstock topic alter-config`: what others have in one command, `topic config set` and `unset`
have in two."""

import click

from appliance.cli.complete import topic_names, topic_settings
from appliance.cli.confirm import dry_run_option, undoable
from appliance.cli.exits import usage
from appliance.cli.link import Link, connected, key_values
from appliance.cli.output import formatted
from appliance.cli.setting_values import in_units
from appliance.cli.topic_config import alter


@click.command("alter-config")
@click.argument("name", shell_complete=topic_names)
@click.option(
    "-s", "--set", "pairs", metavar="KEY=VALUE", multiple=True, shell_complete=topic_settings,
    help="Give it a value of its own; may be repeated.",
)  # fmt: skip
@click.option(
    "-d", "--delete", "keys", metavar="KEY", multiple=True, shell_complete=topic_settings,
    help="Let it follow the broker again; may be repeated.",
)  # fmt: skip
@undoable
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    name: str,
    pairs: tuple[str, ...],
    keys: tuple[str, ...],
    dry_run: bool,
    output: str,
) -> int:
    """Set and unset settings of a topic in one go; see also topic config.

    \b
    penstock topic alter-config orders --set retention.ms=7d --delete flush.policy
    """
    changes: dict[str, str | None] = {**in_units(key_values(pairs, "--set"))}
    if twice := [key for key in keys if key in changes]:
        raise usage(f"{twice[0]}: --set or --delete, one of the two")
    changes |= dict.fromkeys(keys)
    if not changes:
        raise usage("nothing is said: --set KEY=VALUE or --delete KEY")
    return alter(link, name, changes, dry_run, output)
