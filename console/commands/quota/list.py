"""`penstock quota list`: what is set; `describe`: what holds for a client."""

from typing import Final

import click

from appliance.quotas.limits import CLIENT_ID, IP, USER, Entity, entity_text
from console.flags.connection import connected
from console.flags.entity import entity_flags, needed
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.quotas.quota_values import KINDS, shown
from console.model.quotas.quotas import all_quotas, in_effect
from console.show.output import Row, emit

_DEFAULT: Final = "<default>"


@click.command("list")
@entity_flags
@formatted
@connected
@watched
def command(link: Link, entity: Entity, output: str) -> int:
    """List all quotas, or those of one entity.

    \b
    penstock quota list
    penstock quota list --default client-id -o json
    """
    rows: list[Row] = []
    for one, quotas in sorted(all_quotas(link).items(), key=str):
        if entity and one != entity:
            continue
        for kind, value in sorted(quotas.items()):
            row: Row = {"entity": entity_text(one)} | _columns(one)
            rows.append(row | {"quota": kind, "value": value, "limit": shown(kind, value)})
    emit(rows, output, narrow=("entity", "quota", "limit"), name="entity", empty="no quota is set")
    return OK


def _columns(entity: Entity) -> Row:
    """One column for each type; the default by its sign, what is not named as nothing."""
    found = {kind: _DEFAULT if name is None else name for kind, name in entity}
    return {kind.replace("-", "_"): found.get(kind) for kind in (USER, CLIENT_ID, IP)}


@click.command("describe")
@entity_flags
@formatted
@connected
@watched
def describe(link: Link, entity: Entity, output: str) -> int:
    """Show the quotas that apply to a client, and the entity that sets each.

    The most specific entity wins for each kind of quota: user and client id, then user, then client
    id, each by name before default. Without --user the user is ANONYMOUS, that of clients without a
    login. For a default its own quotas are shown.

    \b
    penstock quota describe --client-id loader
    penstock quota describe --user alice --client-id loader -o json
    penstock quota describe --ip 10.0.0.7
    """
    rows: list[Row] = [
        {
            "quota": one.kind,
            "value": one.value,
            "limit": shown(one.kind, one.value),
            "set_for": entity_text(one.holder) if one.value is not None else None,
        }
        for one in in_effect(link, needed(entity), KINDS)
    ]
    emit(rows, output, narrow=("quota", "limit", "set_for"), name="quota")
    return OK
