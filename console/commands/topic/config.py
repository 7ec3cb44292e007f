"""`penstock topic config get|set|unset`, and `topic alter-config`, which sets and unsets in one go
as other tools do. They are `penstock config …` of a topic."""

import click

from console.commands.config.change import show_change
from console.commands.config.values import show_values
from console.flags.complete import topic_names, topic_settings
from console.flags.confirm import dry_run_option, undoable
from console.flags.connection import connected, key_values
from console.flags.output import formatted
from console.model.asking.configs import DELETE, SET, TOPIC, Target, settings
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.asking.setting_values import in_units


@click.group(
    "config",
    epilog="""\b
Examples:
  penstock topic config get orders
  penstock topic config set orders retention.ms=86400000 --dry-run
  penstock topic config unset orders retention.ms""",
)
def command() -> None:
    """Get, set and unset settings of a topic."""


@command.command("get")
@click.argument("name", shell_complete=topic_names)
@click.argument("keys", nargs=-1, metavar="[KEY]...", shell_complete=topic_settings)
@click.option("--changed", is_flag=True, help="Only settings of this topic itself.")
@formatted
@connected
def get_settings(link: Link, name: str, keys: tuple[str, ...], changed: bool, output: str) -> int:
    """Show settings and where each value comes from.

    \b
    penstock topic config get orders
    penstock topic config get orders retention.ms -o json
    penstock topic config get orders --changed
    """
    found = settings(link, Target(TOPIC, name), keys)
    shown = [one for one in found if not changed or one.source == "topic"]
    show_values(shown, output, ("key", "value", "source"), "nothing is set for this topic")
    return OK


@command.command("set")
@click.argument("name", shell_complete=topic_names)
@click.argument(
    "pairs", nargs=-1, required=True, metavar="KEY=VALUE...", shell_complete=topic_settings
)
@undoable
@dry_run_option
@formatted
@connected
def set_(link: Link, name: str, pairs: tuple[str, ...], dry_run: bool, output: str) -> int:
    """Set settings of a topic.

    \b
    penstock topic config set orders retention.ms=7d segment.bytes=100MiB
    penstock topic config set orders flush.policy=os --dry-run
    """
    return _change(link, name, in_units(key_values(pairs, "the setting")), (), dry_run, output)


@command.command("unset")
@click.argument("name", shell_complete=topic_names)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=topic_settings)
@undoable
@dry_run_option
@formatted
@connected
def unset(link: Link, name: str, keys: tuple[str, ...], dry_run: bool, output: str) -> int:
    """Remove settings of a topic; the broker's values apply again.

    \b
    penstock topic config unset orders retention.ms
    """
    if any("=" in key for key in keys):
        raise usage("unset takes keys only, without =VALUE")
    return _change(link, name, {}, keys, dry_run, output)


@click.command("alter-config")
@click.argument("name", shell_complete=topic_names)
@click.option(
    "-s", "--set", "pairs", metavar="KEY=VALUE", multiple=True, shell_complete=topic_settings,
    help="Set a value; may be repeated.",
)  # fmt: skip
@click.option(
    "-d", "--delete", "keys", metavar="KEY", multiple=True, shell_complete=topic_settings,
    help="Remove a value; may be repeated.",
)  # fmt: skip
@undoable
@dry_run_option
@formatted
@connected
def alter(
    link: Link,
    name: str,
    pairs: tuple[str, ...],
    keys: tuple[str, ...],
    dry_run: bool,
    output: str,
) -> int:
    """Set and unset settings of a topic in one request; see also topic config.

    \b
    penstock topic alter-config orders --set retention.ms=7d --delete flush.policy
    """
    given = in_units(key_values(pairs, "--set"))
    if twice := [key for key in keys if key in given]:
        raise usage(f"{twice[0]}: --set or --delete, one of the two")
    if not given and not keys:
        raise usage("nothing to change: --set KEY=VALUE or --delete KEY")
    return _change(link, name, given, keys, dry_run, output)


def _change(
    link: Link, name: str, given: dict[str, str], keys: tuple[str, ...], dry_run: bool, output: str
) -> int:
    changes: dict[str, tuple[int, str | None]] = {k: (SET, value) for k, value in given.items()}
    changes |= dict.fromkeys(keys, (DELETE, None))
    return show_change(link, Target(TOPIC, name), changes, dry_run=dry_run, output=output)
