"""`penstock cluster leave`."""

import time

import click

from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.change import Change
from console.model.asking.failure import OK, Failure
from console.model.asking.link import Link
from console.model.cluster import leaving, nodes
from console.model.topics.replica_changes import NOTHING
from console.show.moving import follow
from console.show.output import Row, emit, print_note, table
from console.show.planned import facts_told, rows_planned

_EVERY_S = 0.5
_SHOWN = 20


@click.command("leave")
@click.argument("node", type=click.IntRange(0), metavar="NODE")
@click.option(
    "--fewer-replicas", "fewer", is_flag=True,
    help="Accept one replica less where no other node can take it.",
)  # fmt: skip
@yes_option
@dry_run_option
@formatted
@connected
def command(link: Link, node: int, fewer: bool, yes: bool, dry_run: bool, output: str) -> int:
    """Remove a node permanently: other nodes take its replicas, and it is unregistered.

    The node gets no new replicas (cordoned.log.dirs). Its replicas move while clients are served,
    and a dynamic voter is removed from the quorum. The command then waits until you stop the node,
    because a running node registers again. Ctrl-C stops only the waiting; the same command
    continues.

    \b
    penstock cluster leave 3 --dry-run
    penstock cluster leave 3
    """
    change = _plan(link, node, fewer)
    if dry_run:
        plan = rows_planned(change) if change is not None else []
        for sentence in change.says if change is not None else (f"node {node} has no replica",):
            print_note(sentence)
        emit(plan, output, name="partition")
        return OK
    _ask(change, node, yes=yes)
    moved = 0
    cordoned = leaving.cordon(link, node)
    while change is not None:  # what was made meanwhile may have got a replica there, too
        moved += len(change.rows)
        change.apply(link)
        follow(link, {str(row[0]).rpartition(":")[0] for row in change.rows})
        change = _plan(link, node, fewer)
    leaving.take_vote(link, node)
    _stopped(link, node)
    if cordoned:
        leaving.uncordon(link, node)  # whoever gets this number later takes partitions
    leaving.unregister(link, node)
    if vote := leaving.still_votes(nodes.read_nodes(link), node):
        print_note(vote)
    row: Row = {"node": node, "status": "gone", "partitions_moved": moved}
    emit([row], output, name="node")
    return OK


def _plan(link: Link, node: int, fewer: bool) -> Change | None:
    """None when nothing is left to move."""
    try:
        return leaving.leaving(link, node, fewer=fewer)
    except Failure as failure:
        if failure.name != NOTHING:
            raise
        return None


def _ask(change: Change | None, node: int, *, yes: bool) -> None:
    told = ""
    if change is not None:
        for sentence in change.says:
            print_note(sentence)
        if not yes:
            plan = rows_planned(change)
            table(list(plan[0]), plan[:_SHOWN], err=True)
            if plan[_SHOWN:]:
                print_note(f"and {len(plan) - _SHOWN:,} more; --dry-run shows all of them")
        told = f": {facts_told(change)}"
    confirm(f"This removes node {node}{told}", yes=yes)


def _stopped(link: Link, node: int) -> None:
    """Until it does not run any more."""
    if not nodes.read_nodes(link).all[node].lives:
        return
    print_note(
        f"node {node} has no replica any more: stop it now; this command waits until it is gone"
    )
    while nodes.read_nodes(link).all[node].lives:
        time.sleep(_EVERY_S)
