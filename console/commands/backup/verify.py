"""`penstock backup verify`."""

import click

from appliance.base.idle import giving_way
from console.flags.output import formatted
from console.flags.private import private
from console.model.asking.failure import NEGATIVE, OK
from console.model.backup import keeping, store
from console.show.output import emit, print_note
from console.show.progress import Progress


@click.command("verify")
@click.argument("where", metavar="WHERE")
@click.argument("name", metavar="[BACKUP]", default="")
@formatted
@private
def command(where: str, name: str, output: str) -> int:
    """Read all files of a backup, or of all backups, and compare their SHA-256. Exit code 4 when a
    file is missing or has changed.

    \b
    penstock backup verify /mnt/backups
    """
    kept, progress = store.opened(where, existing=True), Progress(0)
    wanted = [keeping.chosen(kept, name)] if name else keeping.at_least_one(kept)
    found = giving_way(lambda: keeping.verify(kept, wanted, progress.is_at))
    progress.wipe()
    emit([one._asdict() for one in found], output, name="digest")
    many, damages = ("" if len(one) == 1 else "s" for one in (wanted, found))
    said = f"{len(found)} damage{damages}" if found else "sound"
    print_note(f"{len(wanted)} backup{many}: {said}")
    return NEGATIVE if found else OK
