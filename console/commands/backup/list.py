"""`penstock backup list`."""

import click

from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.backup import keeping, store
from console.show.output import emit


@click.command("list")
@click.argument("where", metavar="WHERE")
@formatted
def command(where: str, output: str) -> int:
    """List the backups in a folder or a bucket, oldest first.

    \b
    penstock backup list /mnt/backups
    """
    rows = [
        {
            "name": one.name,
            "cluster": one.cluster_id,
            "node": one.node_id,
            "partitions": len(one.partitions),
            "bytes": one.bytes,
            "left_out": len(one.left_out),
        }
        for one in keeping.every(store.opened(where, existing=True))
    ]
    emit(rows, output, empty="there is no backup")
    return OK
