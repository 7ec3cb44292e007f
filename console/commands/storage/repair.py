"""`penstock storage repair`."""

import os
import time
from contextlib import ExitStack

import click

from appliance.base.errors import StorageFailed
from appliance.base.idle import giving_way
from appliance.base.os_disk import OsDisk
from appliance.supervisor.folder import DataFolder
from appliance.supervisor.layout import CannotStart
from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.output import formatted
from console.model.asking.failure import NEGATIVE, OK, Failure, usage
from console.model.storage import storage_repair
from console.model.storage.data_folder import DEFAULT_DATA
from console.model.storage.storage import Scrub
from console.model.storage.storage_repair import Planned
from console.show.output import Row, emit, print_note
from console.show.progress import Progress


@click.command("repair")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option("-t", "--topic", default="", metavar="NAME", help="Only the partitions of a topic.")
@dry_run_option
@yes_option
@formatted
def command(folders: tuple[str, ...], topic: str, dry_run: bool, yes: bool, output: str) -> int:
    """Repair the damage that `penstock storage verify` finds. The appliance must not be running.

    Damaged data is moved into a folder beside, never deleted; intact data is served, and consumers
    continue after the gap. Indexes, snapshots and epochs are rebuilt from the records. A log with a
    replica on another node is set aside whole and fetched from there. A torn tail that was never
    acknowledged as durable is left to the next start. The plan is shown first, with the lost
    offsets. Exit code 4: damage is left, or with --dry-run there is something to repair.

    \b
    penstock storage repair --dry-run
    penstock storage repair /srv/a /srv/b --yes
    """
    paths = [os.path.abspath(folder) for folder in folders or (DEFAULT_DATA,)]
    with ExitStack() as locks:
        for path in paths:
            _lock(path, locks)
        try:
            return _repair(paths, topic, output, dry_run=dry_run, yes=yes)
        except StorageFailed as why:
            raise Failure(str(why), name="NOT_REPAIRED") from None
        except OSError as why:
            text = f"{why.filename}: {why.strerror}"
            raise Failure(text, name="NOT_REPAIRED") from None


def _lock(path: str, locks: ExitStack) -> None:
    if not os.path.exists(os.path.join(path, "meta.properties")):
        raise usage(f"{path} is no data folder: it has no meta.properties")
    try:
        locks.callback(DataFolder(path).close)
    except CannotStart as why:
        raise Failure(str(why), name="FOLDER_IN_USE") from None


def _repair(paths: list[str], topic: str, output: str, *, dry_run: bool, yes: bool) -> int:
    disk, what = OsDisk(), Scrub(OsDisk(), paths, topic)
    if what.metadata is None:
        raise usage(
            "the metadata is not in these folders, or it is damaged; it says which partitions other"
            " nodes have", "name the first log folder, too; or penstock metadata repair first",
        )  # fmt: skip
    progress = Progress(what.bytes)
    made, left = giving_way(lambda: storage_repair.plan(disk, what, progress.add_bytes))
    progress.wipe()
    for one in left:
        print_note(
            f"{one.path}: {one.problem}: this is not repaired here; see penstock storage verify"
        )
    if not made or dry_run:
        emit([_row(one, "") for one in made], output, name="partition", empty="nothing to mend")
        return NEGATIVE if made or left else OK
    if not yes:
        emit([_row(one, "") for one in made], "table")
    confirm(f"{len(made)} partitions are mended", yes=yes)
    now_ms = time.time_ns() // 1_000_000
    done = [_row(one, storage_repair.carry_out(disk, one, now_ms)) for one in made]
    emit(done, output, name="partition")
    return NEGATIVE if left else OK


def _row(one: Planned, beside: str) -> Row:
    return {
        "partition": f"{one.place.topic}-{one.place.partition}",
        "action": one.action,
        "lost_offsets": list(one.lost),
        "files": len(one.files),
        "beside": beside or None,
    }
