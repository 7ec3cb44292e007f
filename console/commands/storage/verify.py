"""`penstock storage verify`."""

import os
from dataclasses import asdict
from typing import Final

import click

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from console.flags.output import formatted
from console.model.asking.failure import NEGATIVE, OK, Failure
from console.model.storage.data_folder import DEFAULT_DATA
from console.model.storage.storage import Finding, Reading, Scrub
from console.show.output import emit, plain, print_note
from console.show.progress import Progress

_LINES: Final = ("table", "wide")
_EVERY_S: Final = 0.5
_MB: Final = 1_000_000


@click.command("verify")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option("-t", "--topic", default="", metavar="NAME", help="Only the partitions of a topic.")
@formatted
def command(folders: tuple[str, ...], topic: str, output: str) -> int:
    """Verify every file of a data folder: CRC32C of batches, order of offsets and epochs, indexes
    and transaction indexes against the log, producer snapshots, checkpoint files and metadata.
    Nothing is changed, and the appliance may run.

    DIR is a data folder (default ./penstock-data) or the folder of one partition; with several log
    directories (log.dirs) name all. Files are read from the disk past the page cache, at idle I/O
    priority. Exit code 4 when damage is found.

    \b
    penstock storage verify
    penstock storage verify /srv/a /srv/b -o json
    penstock storage verify --topic orders
    """
    paths = [os.path.abspath(folder) for folder in folders or (DEFAULT_DATA,)]
    what = Scrub(OsDisk(), paths, topic)
    found = _read(what, output)
    if output not in _LINES:
        emit([asdict(one) for one in found], output, name="file")
    damaged = sum(not one.harmless for one in found)
    result = f"{damaged} damages" if damaged != 1 else "1 damage"
    size = f"{len(what.places)} partitions, {what.bytes / _MB:.1f} MB"
    print_note(f"{size}: {result if damaged else 'sound'}")
    if what.running:
        print_note("the appliance runs: what was appended since the beginning was not looked at")
    return NEGATIVE if damaged else OK


def _read(what: Scrub, output: str) -> list[Finding]:
    """Read on, with what is found and how far it is told meanwhile. Raises Failure."""
    reading, progress = Reading(what), Progress(what.bytes)
    found: list[Finding] = []
    try:
        while (step := reading.next(_EVERY_S)) is not None:
            if step.finding is not None:
                found.append(step.finding)
                progress.wipe()
                if output in _LINES:
                    print(_line(step.finding), flush=True)
            progress.add_bytes(step.bytes)
    except StorageFailed as why:
        raise Failure(str(why), name="STORAGE_FAILED") from None
    finally:
        reading.stop()
        progress.wipe()
    return found


def _line(one: Finding) -> str:
    kind = "note" if one.harmless else "damage"
    told = f"{kind}: {one.file}: byte {one.position}: {one.problem}; {one.means}; {one.remedy}"
    return plain(told)
