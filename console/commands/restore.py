"""`penstock restore`."""

import os
import time
from dataclasses import asdict

import click

from appliance.base.os_disk import OsDisk
from console.flags.confirm import dry_run_option
from console.flags.output import formatted
from console.flags.private import private
from console.model.asking.failure import OK
from console.model.backup import keeping, restoring, store
from console.model.backup.manifest import Manifest
from console.model.groups.offsets import time_of
from console.show.figures import moment_in_zone
from console.show.output import Row, emit, print_note
from console.show.progress import Progress


@click.command("restore")
@click.argument("where", metavar="WHERE")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@click.option(
    "--backup", default="", metavar="NAME", help="Restore this backup instead of the newest."
)
@click.option("--to", "to", default="", metavar="TIME", help="Restore no record later than this.")
@dry_run_option
@formatted
@private
def command(
    where: str, folders: tuple[str, ...], backup: str, to: str, dry_run: bool, output: str
) -> int:
    """Restore a backup into the empty folder DIR, for `penstock up --data DIR`. With log.dirs name
    as many folders as there were. The result has the same cluster id and node id, so the original
    must not run any more. A node of a cluster becomes a single appliance with that node's data and
    a new cluster id. Every file is compared with its SHA-256.

    With --to each partition ends before its first batch with a later record timestamp, and
    transactions that were open then are aborted. The first backup after TIME is used. TIME is
    2026-11-23T12:00, 12:00 or 2h (two hours ago).

    \b
    penstock restore /mnt/backups /srv/events
    penstock restore s3://bucket/events /srv/events --to 2026-11-23T12:00
    penstock restore /mnt/backups /srv/events --to 2h --dry-run
    """
    to_ms = time_of(to, time.time_ns() // 1_000_000) if to else -1
    kept, progress = store.opened(where, existing=True), Progress(0)
    chosen = keeping.chosen(kept, backup, to_ms)
    paths = [os.path.abspath(one) for one in folders]
    if dry_run:
        planned = restoring.planned(kept, chosen, paths, to_ms)
        _show({"name": chosen.name, **asdict(planned)}, planned.to_ms if to else None, output)
        _tell_left_out(chosen)
        print_note(
            "dry run: nothing is written" + ("; the bytes are those before the cut" if to else "")
        )
        return OK
    made = restoring.restore(OsDisk(), kept, chosen, paths, progress.is_at, to_ms)
    progress.wipe()
    _show({"name": chosen.name, **asdict(made)}, made.to_ms if to else None, output)
    _tell_left_out(chosen)
    if made.alone:
        print_note(
            f"it was node {chosen.node_id} of a cluster; it becomes a single appliance with a "
            "new cluster id"
        )
    print_note(f"penstock up --data {folders[0]} opens it")
    return OK


def _show(row: Row, to_ms: int | None, output: str) -> None:
    """People read a time, programs get ms."""
    row["to_ms"] = to_ms
    row.pop("alone", None)
    if output in ("table", "wide"):
        del row["to_ms"]
        row["to"] = None if to_ms is None else moment_in_zone(to_ms)
    emit([row], output)


def _tell_left_out(chosen: Manifest) -> None:
    for text in chosen.left_out:
        print_note(f"not in this backup: {text}")
    if chosen.missing:
        print_note(f"partitions of other nodes only, empty after the restore: {chosen.missing}")
    if chosen.torn:
        print_note(
            "transactions were completing throughout: without --to it ends at the last point "
            "where all are complete"
        )
