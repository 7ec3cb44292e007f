"""`penstock backup prune`."""

import click

from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.backup import keeping, manifest, store
from console.show.output import emit


@click.command("prune")
@click.argument("where", metavar="WHERE")
@click.option(
    "--keep", type=click.IntRange(1), required=True, metavar="N", help="Number of backups to keep."
)
@dry_run_option
@yes_option
@formatted
def command(where: str, keep: int, dry_run: bool, yes: bool, output: str) -> int:
    """Delete all backups but the newest N, and files that no other backup needs. Take no backup
    there meanwhile.

    \b
    penstock backup prune /mnt/backups --keep 14
    """
    kept = store.opened(where, existing=True)
    gone = manifest.names(kept)[:-keep]
    if gone and not dry_run:
        confirm(f"{len(gone)} backups deleted in {where}", yes=yes)
        keeping.delete_backups(kept, keep)
    emit([{"name": name} for name in gone], output, empty="no backup to delete")
    return OK
