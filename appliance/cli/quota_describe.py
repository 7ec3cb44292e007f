"""`penstock quota describe`."""

import click

from appliance.cli.exits import OK
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.quota_client import all_quotas
from appliance.cli.quota_entity import entity_flags, needed
from appliance.cli.quota_values import KINDS, shown
from appliance.quotas.limits import (
    CLIENT_ID,
    CONNECTION,
    IP,
    USER,
    Entity,
    Limits,
    entity_of,
    entity_text,
)

_ANYBODY = "ANONYMOUS"


@click.command("describe")
@entity_flags
@formatted
@connected
def command(link: Link, entity: Entity, output: str) -> int:
    """Show which limits hold for a client, and which entity has them.

    Of the entities that have a quota of a kind the most specific one wins: user and client id, then
    user, then client id, each by name before by default. Without --user it is ANONYMOUS, the user
    of everybody who does not log in. For a default its own quotas are shown.

    \b
    penstock quota describe --client-id loader
    penstock quota describe --user alice --client-id loader -o json
    penstock quota describe --ip 10.0.0.7
    """
    quotas = all_quotas(link)
    named = dict(needed(entity))
    rows: list[Row] = []
    for kind in KINDS:
        if (kind == CONNECTION) != (IP in named):
            continue
        if None in named.values():
            value, holder = quotas.get(entity, {}).get(kind), entity
        else:
            value, holder = _in_effect(quotas, kind, {k: n or "" for k, n in named.items()})
        row: Row = {"quota": kind, "value": value, "limit": shown(kind, value)}
        rows.append(row | {"set_for": entity_text(holder) if value is not None else None})
    emit(rows, output, narrow=("quota", "limit", "set_for"), name="quota")
    return OK


def _in_effect(
    quotas: dict[Entity, dict[str, float]], kind: str, named: dict[str, str]
) -> tuple[float | None, Entity]:
    limits = Limits(kind, quotas)
    user, client_id = named.get(USER, _ANYBODY), named.get(CLIENT_ID, "")
    if kind == CONNECTION:
        user, client_id = named[IP], ""
        limit = limits.of_ip(user)
    else:
        limit = limits.of(user, client_id)
    if limit is None:
        return None, ()
    return limit.bound, entity_of(limit.level, user, client_id)
