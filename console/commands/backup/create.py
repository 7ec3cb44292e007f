"""`penstock backup create`."""

import os
from typing import Final

import click

from appliance.base.idle import giving_way
from appliance.base.os_disk import OsDisk
from console.flags.output import formatted
from console.flags.private import private
from console.model.asking.failure import NEGATIVE, OK, usage
from console.model.backup import keeping, store
from console.model.backup.instant import Running
from console.model.backup.taking import take_backup
from console.model.storage.data_folder import DEFAULT_DATA
from console.show.output import emit, print_note
from console.show.progress import Progress

_NARROW: Final = ("name", "partitions", "bytes", "sent", "left_out", "forgotten")


@click.command("create")
@click.argument("where", metavar="WHERE")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option(
    "--keep", type=click.IntRange(1), metavar="N", help="Delete all backups but the newest N."
)
@formatted
@private
def command(where: str, folders: tuple[str, ...], keep: int | None, output: str) -> int:
    """Back up the appliance that runs in DIR (default ./penstock-data; with log.dirs name all, in
    order) as of one instant: topics with ids and settings, quotas, ACLs, records, committed
    offsets, transactions.

    WHERE is a folder, or s3://BUCKET/PREFIX (AWS_ENDPOINT_URL and the other usual variables). Data
    of an earlier backup there is not copied again. Segments are verified while they are read. Exit
    code 4 when partitions had to be left out.

    A node of a cluster backs up the partitions that it has a replica of; penstock restore makes a
    single appliance from it. Each node needs its own WHERE.

    \b
    penstock backup create /mnt/backups
    penstock backup create s3://bucket/events /srv/a /srv/b --keep 14
    """
    disk, progress = OsDisk(), Progress(0)
    kept = store.opened(where)
    paths = [os.path.abspath(one) for one in folders or (DEFAULT_DATA,)]
    if any(f"{os.path.abspath(where)}/".startswith(f"{path}/") for path in paths):
        raise usage(f"{where} lies inside the data folder: a loss of the one is a loss of both")
    running = Running(disk, paths)
    taken = giving_way(lambda: take_backup(disk, running, kept, progress.is_at))
    progress.wipe()
    made = taken.manifest
    gone = keeping.delete_backups(kept, keep) if keep else []
    row = {
        "name": made.name,
        "partitions": len(made.partitions),
        "bytes": made.bytes,
        "sent": taken.sent,
        "left_out": list(made.left_out),
        "elsewhere": list(made.elsewhere),
        "forgotten": gone,
    }
    emit([row], output, narrow=_NARROW)
    for text in made.left_out:
        print_note(f"left out: {text}")
    if made.elsewhere:
        print_note(f"partitions of other nodes only, not in this backup: {made.missing}")
    if made.torn:
        print_note(
            "transactions were completing throughout: a restore ends at the last point where "
            "all are complete"
        )
    return NEGATIVE if made.left_out else OK
