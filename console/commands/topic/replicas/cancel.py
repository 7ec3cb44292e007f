"""`penstock topic replicas cancel`."""

import click

from console.flags.complete import topic_names
from console.flags.confirm import dry_run_option, undoable
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.cluster import nodes
from console.model.topics import moves
from console.show.output import Row, emit


@click.command("cancel")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)
@undoable
@dry_run_option
@formatted
@connected
def command(link: Link, names: tuple[str, ...], dry_run: bool, output: str) -> int:
    """Cancel reassignments: added replicas are removed, and the original ones stay.

    \b
    penstock topic replicas cancel orders
    """
    found = moves.under_way(link, nodes.read_nodes(link).all, names)
    if found and not dry_run:
        moves.alter_reassignments(link, {one.place: None for one in found})
    rows: list[Row] = [
        {
            "partition": f"{one.topic}:{one.partition}",
            "replicas": [each for each in one.replicas if each not in one.adding],
            "status": "would be taken back" if dry_run else "taken back",
        }
        for one in found
    ]
    emit(rows, output, name="partition", empty="none of its replicas moves")
    return OK
