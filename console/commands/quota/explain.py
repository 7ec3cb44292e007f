"""`penstock quota explain`: every rule that could hold for a client, in order, and which does."""

import click

from appliance.quotas.limits import CLIENT_ID, IP, USER, Entity, entity_text
from console.flags.connection import connected
from console.flags.entity import entity_flags, needed
from console.flags.output import formatted
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.quotas.quota_rules import ANYBODY, Client, Rule, explained
from console.model.quotas.quota_values import KINDS, shown
from console.model.quotas.quotas import all_quotas
from console.show.output import Row, emit


@click.command("explain")
@click.option("--all", "everything", is_flag=True, help="Include rules without a value.")
@entity_flags
@formatted
@connected
def command(link: Link, everything: bool, entity: Entity, output: str) -> int:
    """Show every quota rule for a client in Kafka's order of precedence, and which one applies.

    For each kind of quota the first rule with a value applies: user and client id, then user, then
    client id, each by name before default (KIP-55). TOGETHER shows which clients share the quota.
    Without --user the user is ANONYMOUS, that of clients without a login.

    \b
    penstock quota explain --user alice --client-id loader
    penstock quota explain --ip 10.0.0.7 --all
    """
    named = dict(needed(entity))
    if None in named.values():
        raise usage("a default is no client", "penstock quota list --default TYPE shows its quotas")
    who = Client(named.get(USER) or ANYBODY, named.get(CLIENT_ID) or "", named.get(IP) or "")
    rules = explained(all_quotas(link), who, KINDS)
    rows = [_row(one) for one in rules if everything or one.value is not None]
    narrow = ("quota", "rank", "entity", "limit", "holds", "together")
    emit(rows, output, narrow=narrow, name="entity", empty="no quota applies to this client")
    return OK


def _row(one: Rule) -> Row:
    return {
        "quota": one.kind,
        "rank": one.rank,
        "entity": entity_text(one.entity),
        "value": one.value,
        "limit": shown(one.kind, one.value),
        "holds": one.holds,
        "together": one.together,
    }
