"""`penstock quota list`."""

import click

from appliance.cli.exits import OK
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.quota_client import all_quotas
from appliance.cli.quota_entity import columns, entity_flags
from appliance.cli.quota_values import shown
from appliance.quotas.limits import Entity, entity_text


@click.command("list")
@entity_flags
@formatted
@connected
def command(link: Link, entity: Entity, output: str) -> int:
    """List every quota that is set, or those of one entity.

    \b
    penstock quota list
    penstock quota list --default client-id -o json
    """
    rows: list[Row] = []
    for one, quotas in sorted(all_quotas(link).items(), key=str):
        if entity and one != entity:
            continue
        for kind, value in sorted(quotas.items()):
            row: Row = {"entity": entity_text(one)} | columns(one)
            rows.append(row | {"quota": kind, "value": value, "limit": shown(kind, value)})
    emit(rows, output, narrow=("entity", "quota", "limit"), name="entity", empty="no quota is set")
    return OK
