"""`penstock quota unset`."""

import click

from appliance.cli.confirm import dry_run_option, undoable
from appliance.cli.exits import OK, usage
from appliance.cli.link import Link, connected
from appliance.cli.output import emit, formatted, say
from appliance.cli.quota_change import change
from appliance.cli.quota_client import own_quotas
from appliance.cli.quota_entity import entity_flags, needed
from appliance.cli.quota_values import kind_of
from appliance.quotas.limits import Entity, entity_text


@click.command("unset")
@click.argument("names", nargs=-1, metavar="[QUOTA]...")
@click.option("--all", "everything", is_flag=True, help="All quotas of the entity.")
@entity_flags
@undoable
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    names: tuple[str, ...],
    everything: bool,
    entity: Entity,
    dry_run: bool,
    output: str,
) -> int:
    """Take quotas away; what a less specific entity has holds then.

    \b
    penstock quota unset --client-id loader produce
    penstock quota unset --default user --all
    """
    if bool(names) == everything:
        raise usage("name the quotas, or say --all: one of the two")
    kinds = [kind_of(name) for name in names] or list(own_quotas(link, needed(entity)))
    if not kinds:
        say(f"{entity_text(entity)} has no quotas")
        emit([], output)
        return OK
    changes = dict.fromkeys(kinds)
    return change(link, needed(entity), changes, dry_run=dry_run, output=output)
