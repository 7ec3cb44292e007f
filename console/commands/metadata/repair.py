"""`penstock metadata repair`: a new metadata log from the newest snapshot, every whole batch behind
it, and the partitions' own folders."""

import os
import time
from typing import Final

import click

from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.control.folder.format import check_metadata_is_whole
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum.log_repair import Plan
from appliance.control.quorum.metadata_log import whole
from appliance.metadata.identity import read_identity
from appliance.supervisor.folder import DataFolder
from appliance.supervisor.layout import CannotStart
from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.output import formatted
from console.model.asking.failure import NEGATIVE, OK, Failure, usage
from console.show.output import Row, emit, print_note

_SHOWN: Final = 5


@click.command("repair")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@dry_run_option
@yes_option
@formatted
def command(folders: tuple[str, ...], dry_run: bool, yes: bool, output: str) -> int:
    """Rebuild the metadata log from everything readable. The appliance must not be running.

    FOLDER is the data folder; with several (log.dirs) name all, in order. Topics missing from both
    snapshot and log are recovered from their partition folders with default settings. Damaged files
    are kept under another name. For one of several voters the log is set aside and fetched from the
    others. Exit code 4 with --dry-run when data is lost.

    \b
    penstock metadata repair penstock-data --dry-run
    penstock metadata repair /srv/a /srv/b --yes
    """
    data_dir, *others = (os.path.abspath(folder) for folder in folders)
    disk = OsDisk()
    try:
        identity = read_identity(disk, data_dir)
        locks = [DataFolder(path) for path in (data_dir, *others)]
    except ConfigError as problem:
        raise usage(str(problem)) from None
    except CannotStart as problem:
        raise Failure(str(problem), name="FOLDER_IN_USE") from None
    except OSError as problem:
        raise Failure(f"{problem.filename}: {problem.strerror}", name="NO_FOLDER") from None
    try:
        repair.finish(disk, data_dir)
        made = repair.plan(disk, data_dir, others, identity.node_id)
        sound = made.lossless and whole(disk, data_dir)
        if not sound and repair.others_vote(disk, data_dir, identity.node_id, made):
            return _set_aside(disk, data_dir, output, dry_run=dry_run, yes=yes)
        row = _row(made)
        if sound or dry_run:
            emit(
                [row | {"result": "sound" if sound else "would be rebuilt"}],
                output,
                name="result",
            )
            _say_what_is_lost(made)
            return OK if sound or made.lossless else NEGATIVE
        _say_what_is_lost(made)
        what = f"The metadata log of {data_dir} is rebuilt with {row['topics']} topics"
        confirm(what, yes=yes)
        old = repair.carry_out(disk, data_dir, made, time.time_ns() // 1_000_000)
        check_metadata_is_whole(disk, [data_dir], made.image)
    except (StorageFailed, ConfigError) as problem:
        raise Failure(str(problem), name="NOT_REPAIRED") from None
    finally:
        for lock in locks:
            lock.close()
    emit(
        [row | {"result": f"rebuilt, the old files are in {os.path.basename(old)}"}],
        output,
        name="result",
    )
    return OK


def _set_aside(disk: OsDisk, data_dir: str, output: str, *, dry_run: bool, yes: bool) -> int:
    """Sets the whole log aside: the other voters have the rest of what is committed, and cutting it
    off here could undo it there.
    """
    print_note(
        "damaged, and the other voters have the whole log: the log is set aside, and the next "
        "start fetches it from them. All of them must run until this node has caught up"
    )
    result = "would be set aside"
    if not dry_run:
        confirm(f"The metadata log of {data_dir} is set aside", yes=yes)
        old = repair.set_aside(disk, data_dir, time.time_ns() // 1_000_000)
        result = f"set aside, the old files are in {os.path.basename(old)}"
    emit([{"result": result}], output, name="result")
    return OK


def _row(made: Plan) -> Row:
    topics = made.image.topics_by_name.values()
    return {
        "topics": len(topics),
        "partitions": sum(len(topic.partitions) for topic in topics),
        "snapshot": made.snapshot if made.snapshot >= 0 else None,
        "end": made.end,
        "lost": len(made.lost),
        "from_folders": sorted(made.found),
    }


def _say_what_is_lost(made: Plan) -> None:
    for first, last in made.lost[:_SHOWN]:
        to = f"to {last}" if last >= 0 else "on"
        print_note(
            f"damaged: the records from offset {first} {to} are in no snapshot: what they changed"
            " is lost"
        )
    if made.contradictions:
        print_note(f"{made.contradictions} records depend on those and are left out")
    for name, partitions in sorted(made.found.items()):
        print_note(f"topic {name} ({partitions} partitions) is recovered from its folders: its "
            "settings become the defaults")  # fmt: skip
