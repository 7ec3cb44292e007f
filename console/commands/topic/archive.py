"""`penstock topic archive` and `restore`."""

import os
import time
from contextlib import closing
from dataclasses import asdict

import click

from appliance.base.idle import giving_way
from appliance.base.os_disk import OsDisk
from appliance.supervisor.folder import DataFolder
from appliance.supervisor.layout import CannotStart
from console.flags.confirm import dry_run_option
from console.flags.output import formatted
from console.flags.private import private
from console.model.asking.failure import OK, Failure, usage
from console.model.backup.archiving import (
    TopicRestore,
    archive_topic,
    chosen_archive,
    opened_archive,
)
from console.model.backup.instant import Running
from console.model.storage.data_folder import DEFAULT_DATA
from console.show.output import emit, print_note
from console.show.progress import Progress


@click.command("archive")
@click.argument("topic")
@click.argument("where", metavar="WHERE")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@formatted
@private
def command(topic: str, where: str, folders: tuple[str, ...], output: str) -> int:
    """Copy a topic, with id, settings and records, out of the appliance that runs in DIR (default
    ./penstock-data; with log.dirs name all, in order), as of one instant.

    WHERE is a folder, file:///FOLDER or s3://BUCKET/PREFIX; the archive lies in WHERE/TOPIC, as a
    backup of that topic alone: `penstock backup list`, `verify` and `prune` know it. What an
    earlier archive has, also one that was cut off, is not sent again. Segments are verified while
    they are read. Committed offsets of groups stay here.

    \b
    penstock topic archive orders /mnt/archive
    penstock topic archive orders s3://bucket/topics /srv/events
    """
    disk, progress = OsDisk(), Progress(0)
    paths = [os.path.abspath(one) for one in folders or (DEFAULT_DATA,)]
    inside = os.path.abspath(where.removeprefix("file://"))
    if any(f"{inside}/".startswith(f"{path}/") for path in paths):
        raise usage(f"{where} lies inside the data folder: a loss of the one is a loss of both")
    store, running = opened_archive(where, topic), Running(disk, paths)
    taken = giving_way(lambda: archive_topic(disk, running, paths, store, topic, progress.is_at))
    progress.wipe()
    made = taken.manifest
    row = {
        "topic": topic,
        "archive": made.name,
        "partitions": len(made.partitions),
        "bytes": made.bytes,
        "sent": taken.sent,
    }
    emit([row], output)
    return OK


@click.command("restore")
@click.argument("topic")
@click.argument("where", metavar="WHERE")
@click.argument("folder", metavar="DIR")
@click.option("--archive", default="", metavar="NAME", help="Restore this one, not the newest.")
@dry_run_option
@formatted
@private
def restore(topic: str, where: str, folder: str, archive: str, dry_run: bool, output: str) -> int:
    """Put an archived topic into DIR, the first data folder of a stopped appliance, which brings it
    back with `penstock topic undelete TOPIC` once it runs: the same id, settings, offsets,
    timestamps, headers and leader epochs. The appliance may be another one than before.

    Every segment is compared with its SHA-256. A restore that was cut off goes on with what is
    there. The only replica is on this node; penstock topic replicas set makes more.

    \b
    penstock topic restore orders /mnt/archive /srv/events
    penstock topic restore orders s3://bucket/topics /srv/events --dry-run
    """
    path, progress = os.path.abspath(folder), Progress(0)
    store = opened_archive(where, topic, existing=True)
    chosen = chosen_archive(store, topic, archive)
    if not os.path.exists(os.path.join(path, "meta.properties")):
        raise usage(f"{folder} is no data folder: it has no meta.properties")
    try:
        lock = DataFolder(path)
    except CannotStart as why:
        raise Failure(str(why), "stop the appliance first", name="FOLDER_IN_USE") from None
    with closing(lock):
        now_ms = time.time_ns() // 1_000_000
        restoring = TopicRestore(OsDisk(), store, chosen, path, now_ms, progress.is_at)
        if dry_run:
            row = {"topic": topic, "archive": chosen.name, "partitions": len(chosen.partitions)}
            emit([row | {"bytes": chosen.bytes, "status": "would be restored"}], output)
            return OK
        made = giving_way(restoring.restore_topic)
    progress.wipe()
    emit([asdict(made) | {"archive": chosen.name}], output)
    print_note(f"start the appliance, then: penstock topic undelete {topic}")
    return OK
