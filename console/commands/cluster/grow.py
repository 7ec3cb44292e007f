"""`penstock cluster grow`."""

import click

from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model import new_topics, replica_changes
from console.model.failure import OK, Failure
from console.model.link import Link
from console.show.moving import follow
from console.show.output import emit, say
from console.show.planned import facts_told, rows_planned

_REPLICAS = 3


@click.command("grow")
@click.argument("replicas", type=click.IntRange(1), default=_REPLICAS, metavar="[N]")
@yes_option
@dry_run_option
@formatted
@connected
def command(link: Link, replicas: int, yes: bool, dry_run: bool, output: str) -> int:
    """Give every topic that has fewer so many replicas (3), also those of groups and transactions.

    For a cluster that was one appliance: what was made then has one replica. Who is to lead is
    spread over the nodes; they take over within minutes. New topics get so many, too, unless that
    is set for all nodes already. Waits until all replicas are in sync;
    Ctrl-C ends nothing but the looking. `topic replicas set` does it for a single topic.

    \b
    penstock cluster grow --dry-run
    penstock cluster grow 3
    """
    defaults = new_topics.missing(link, replicas) if replicas > 1 else {}
    told = ", ".join(f"{key}={value}" for key, value in defaults.items())
    told = f"new topics get {replicas} replicas, too ({told}, for all nodes)" if told else ""
    try:
        change = replica_changes.growing(link, replicas)
    except Failure as failure:
        if failure.name != replica_changes.NOTHING:
            raise
        if told and not dry_run:
            confirm(told, yes=yes)
            new_topics.keep(link, defaults)
        say(told or failure.hint)
        emit([], output)
        return OK
    plan, facts = rows_planned(change), "; ".join(filter(None, (facts_told(change), told)))
    if dry_run:
        say(facts)
        emit([row | {"status": "would be"} for row in plan], output, name="partition")
        return OK
    confirm(facts, yes=yes)
    if defaults:
        new_topics.keep(link, defaults)
    change.apply(link)
    follow(link, {str(row[0]).rpartition(":")[0] for row in change.rows})
    emit([row | {"status": replica_changes.DONE} for row in plan], output, name="partition")
    return OK
