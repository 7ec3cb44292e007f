"""`penstock import` and `penstock export`: from a folder of Apache Kafka, and back."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.output import formatted
from console.flags.private import private
from console.model.asking.failure import OK, Failure
from console.model.storage import folder_copy, kafka_folder
from console.model.storage.data_folder import DEFAULT_DATA, DEFAULT_NODE, KEPT
from console.model.storage.kafka_folder import Found
from console.show.output import Row, emit, print_note
from console.show.progress import Progress

_MB: Final = 1_000_000


@click.command("import")
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--data",
    default=DEFAULT_DATA,
    metavar="DIR",
    help=f"The data folder to create; empty or absent.  [default: ./{DEFAULT_DATA}]",
)
@dry_run_option
@yes_option
@formatted
@private
def take_in(folder: str, data: str, dry_run: bool, yes: bool, output: str) -> int:
    """Convert the data folder of a stopped Apache Kafka broker, for `penstock up --data DIR`.

    FOLDER is the value of log.dirs in server.properties, of one KRaft node that is broker and
    controller. Topics, settings, records with their offsets, groups, transactions and producers are
    kept. The cluster id and node id are kept as well, so the two must never run at the same time.
    FOLDER is only read. The plan is shown first, with all differences.

    \b
    penstock import /var/lib/kafka --data /srv/events --dry-run
    penstock import /var/lib/kafka --data /srv/events --yes
    """  # fmt: skip
    source, target, disk = os.path.abspath(folder), os.path.abspath(data), OsDisk()
    with folder_copy.stopped(source):
        found = kafka_folder.of_kafka(disk, source)
        if not _agreed(found, target, output, dry_run=dry_run, yes=yes):
            return OK
        node, extra = found.identity.node_id, {}
        if node != DEFAULT_NODE:
            extra = {KEPT: f"node.id={node}\n".encode()}
        with _copying(found) as is_at:
            kafka_folder.import_folder(disk, found, target, is_at, extra)
    print_note(
        f"penstock up --data {data} opens it; never start Apache Kafka on {folder} beside it"
    )
    return OK


@click.command("export")
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--data",
    default=DEFAULT_DATA,
    metavar="DIR",
    help=f"The data folder.  [default: ./{DEFAULT_DATA}]",
)
@dry_run_option
@yes_option
@formatted
@private
def give_out(folder: str, data: str, dry_run: bool, yes: bool, output: str) -> int:
    """Convert the data folder of a stopped appliance into one that Apache Kafka starts with.

    FOLDER is empty or absent; it also gets a server.properties. Topics, records, groups,
    transactions and producers are kept; settings unknown to Apache Kafka are left out. The data
    folder is only read.

    \b
    penstock export /var/lib/kafka --data /srv/events --dry-run
    penstock export /var/lib/kafka --data /srv/events --yes
    kafka-server-start.sh /var/lib/kafka/server.properties
    """  # fmt: skip
    source, target, disk = os.path.abspath(data), os.path.abspath(folder), OsDisk()
    with folder_copy.stopped(source):
        found = kafka_folder.of_ours(disk, source)
        if not _agreed(found, target, output, dry_run=dry_run, yes=yes):
            return OK
        with _copying(found) as is_at:
            kafka_folder.export_folder(disk, found, target, is_at, time.time_ns() // _MB)
    print_note(f"kafka-server-start.sh {target}/server.properties starts Apache Kafka on it")
    return OK


@contextmanager
def _copying(found: Found) -> Iterator[Callable[[int, int], None]]:
    """To be told how many bytes are copied, of how many. Raises Failure."""
    progress = Progress(found.size)
    try:
        yield progress.is_at
    except StorageFailed as why:
        raise Failure(str(why), name="CANNOT_MOVE") from None
    progress.wipe()


def _agreed(found: Found, target: str, output: str, *, dry_run: bool, yes: bool) -> bool:
    """Show the plan, ask. Whether it is to be done."""
    folder_copy.check_target(target, found.folder)
    folder_copy.check_room(target, found.size)
    plan: Row = {
        "cluster_id": found.identity.cluster_id,
        "node_id": found.identity.node_id,
        "clean": found.clean,
        "topics": len(found.image.topics_by_name),
        "partitions": found.partitions,
        "files": len(found.files),
        "bytes": found.size,
    }
    if output != "table":
        plan["notes"] = found.notes
    emit([plan], output)
    for note in found.notes:
        print_note(f"note: {note}")
    if dry_run:
        return False
    confirm(f"{found.size / _MB:.0f} MB are copied into {target}", yes=yes)
    return True
