"""`penstock topic replicas status`."""

import click

from console.flags.complete import topic_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.cluster import nodes
from console.model.topics import moves
from console.show.figures import in_bytes
from console.show.output import Row, emit, rows_of


@click.command("status")
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=topic_names)
@formatted
@connected
@watched
def command(link: Link, names: tuple[str, ...], output: str) -> int:
    """Show reassignments: replicas being added and removed, and the bytes copied.

    \b
    penstock topic replicas status
    penstock topic replicas status orders -w
    """
    found = moves.under_way(link, nodes.read_nodes(link).all, names or None)
    rows: list[Row] = rows_of(found)
    if output in ("table", "wide"):
        rows = [_shown(one) for one in found]
    emit(rows, output, name="topic", empty="no replica is on its way")
    return OK


def _shown(one: moves.Move) -> Row:
    share = None if one.bytes is None or one.copied is None else one.copied / (one.bytes or 1)
    return {
        "partition": f"{one.topic}:{one.partition}",
        "replicas": one.replicas,
        "adding": one.adding or None,
        "removing": one.removing or None,
        "copied": in_bytes(one.copied),
        "of": in_bytes(one.bytes),
        "share": None if share is None else f"{share:.0%}",
    }
