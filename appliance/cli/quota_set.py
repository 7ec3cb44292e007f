"""`penstock quota set`."""

import click

from appliance.cli.confirm import dry_run_option, undoable
from appliance.cli.link import Link, connected, key_values
from appliance.cli.output import formatted
from appliance.cli.quota_change import change
from appliance.cli.quota_entity import entity_flags, needed
from appliance.cli.quota_values import kind_of, read
from appliance.quotas.limits import Entity


@click.command("set")
@click.argument("pairs", nargs=-1, required=True, metavar="QUOTA=VALUE...")
@entity_flags
@undoable
@dry_run_option
@formatted
@connected
def command(link: Link, pairs: tuple[str, ...], entity: Entity, dry_run: bool, output: str) -> int:
    """Set quotas; they hold from the next request on.

    QUOTA is Kafka's name or a short one: produce (producer_byte_rate), fetch (consumer_byte_rate),
    request (request_percentage), mutations (controller_mutation_rate), connections
    (connection_creation_rate). VALUE: 10MB/s, 1.5MiB/s, 250000; 50% of one CPU; 5/s.

    \b
    penstock quota set --client-id loader produce=10MB/s fetch=20MB/s
    penstock quota set --user alice --default client-id produce=1MB/s
    penstock quota set --default ip connections=20/s --dry-run
    """
    given = key_values(pairs, "the quota")
    changes: dict[str, float | None] = {}
    for name, text in given.items():
        kind = kind_of(name)
        changes[kind] = read(kind, text)
    return change(link, needed(entity), changes, dry_run=dry_run, output=output)
