"""`penstock storage remote`."""

import os
from dataclasses import asdict

import click

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from console.flags.output import formatted
from console.model.asking.failure import OK, usage
from console.model.storage import remote_segments
from console.model.storage.data_folder import DEFAULT_DATA
from console.show.figures import in_bytes
from console.show.output import emit, print_note


@click.command("remote")
@click.argument("folder", default=DEFAULT_DATA, metavar="[DIR]")
@formatted
def command(folder: str, output: str) -> int:
    """Show the partitions of a data folder that have segments in a remote store: how many and which
    offsets, what lies here, and what waits to be copied. The appliance may run or not.

    \b
    penstock storage remote
    penstock storage remote /srv/events -o json
    """
    path = os.path.abspath(folder)
    try:
        found = remote_segments.find_partitions(OsDisk(), path)
    except StorageFailed as failure:
        raise usage(str(failure), "name the data folder of an appliance") from None
    emit([asdict(one) for one in found], output)
    there, waiting = (
        sum(one.remote_bytes for one in found),
        sum(one.waiting_bytes for one in found),
    )
    print_note(f"{in_bytes(there)} are in the remote store, {in_bytes(waiting)} wait for it")
    return OK
