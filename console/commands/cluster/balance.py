"""`penstock cluster balance`."""

import click

from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.model.asking.link import Link
from console.model.topics.balance_changes import BalancePlan, balancing, is_moving
from console.model.topics.elections import elect_preferred
from console.model.topics.throttles import end_throttle, throttle_moves
from console.show.moving import follow
from console.show.output import Row, emit, print_note, table
from console.show.planned import facts_told, rows_planned

_SHOWN = 20


@click.command("balance")
@click.option(
    "--leaders", "only_leaders", is_flag=True,
    help="Even who leads; no replica moves and nothing is copied.",
)  # fmt: skip
@click.option(
    "--throttle", type=click.IntRange(1), metavar="BYTES",
    help="Copy at most so many bytes per second to, and from, each node.",
)  # fmt: skip
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link, only_leaders: bool, throttle: int | None, yes: bool, dry_run: bool, output: str
) -> int:
    """Even the replicas and the leaders of all topics over the nodes that run.

    Replicas move one by one from the node with most to the node with least, never into fewer racks;
    then partitions are led by the first of their replicas. Nodes that are cordoned get no replica,
    and partitions with a replica on a node that is down stay as they are. Ctrl-C stops only the
    waiting; the same command continues.

    \b
    penstock cluster balance --dry-run
    penstock cluster balance --throttle 50000000
    penstock cluster balance --leaders --yes
    """
    if not dry_run and is_moving(link):
        print_note("replicas are on their way already: this command waits for them first")
        follow(link, None)
    words = ("cluster", "balance", *(("--leaders",) if only_leaders else ()))
    plan = balancing(link, only_leaders=only_leaders, words=words)
    _tell(plan)
    rows = rows_planned(plan.moves) if plan.moves is not None else []
    if dry_run:
        emit([row | {"status": "would be"} for row in rows], output, name="partition")
        return OK
    if plan.moves is None and not plan.to_elect:
        if throttle is not None:
            _end_throttle(link, plan)  # an earlier run was stopped while it waited
        emit([], output)
        return OK
    if plan.moves is not None and not yes:
        table(list(rows[0]), rows[:_SHOWN], err=True)
        if rows[_SHOWN:]:
            print_note(f"and {len(rows) - _SHOWN:,} more; --dry-run shows all of them")
    confirm(_facts(plan), yes=yes)
    if plan.moves is not None:
        if throttle is not None:
            throttle_moves(link, plan.wanted, plan.replicas, plan.nodes, throttle)
        plan.moves.apply(link)
        follow(link, {topic for topic, _ in plan.wanted})
    if throttle is not None:
        _end_throttle(link, plan)
    if later := elect_preferred(link, plan.to_elect):
        print_note(
            f"{len(later)} partitions are led by others until their first replica is in sync"
        )
    emit([row | {"status": "done"} for row in rows], output, name="partition")
    return OK


def _end_throttle(link: Link, plan: BalancePlan) -> None:
    end_throttle(link, {topic for topic, _ in plan.replicas}, plan.nodes)


def _facts(plan: BalancePlan) -> str:
    told = [facts_told(plan.moves)] if plan.moves is not None else []
    if plan.to_elect:
        told.append(f"{len(plan.to_elect)} partitions get another leader")
    return ", ".join(told)


def _tell(plan: BalancePlan) -> None:
    """Shows the load of each node, now and after."""
    rows: list[Row] = [
        {
            "node": node,
            "replicas": plan.before.replicas[node],
            "replicas after": plan.after.replicas[node],
            "first of": plan.before.leaders[node],
            "first of after": plan.after.leaders[node],
        }
        for node in plan.nodes
    ]
    if not rows:
        raise Failure("no broker runs", "penstock cluster status shows the nodes")
    table(list(rows[0]), rows, err=True)
    if plan.left_alone:
        print_note(f"{plan.left_alone} partitions have a replica on a node that does not run")
    if plan.moves is None and not plan.to_elect:
        print_note("nothing would change: it is even already")
