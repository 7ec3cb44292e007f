"""`penstock storage reclaim`."""

import os
from dataclasses import asdict

import click

from appliance.base.os_disk import OsDisk
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.storage import reclaim
from console.model.storage.data_folder import DEFAULT_DATA
from console.show.figures import in_bytes
from console.show.output import emit, print_note


@click.command("reclaim")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option("--delete", "names", multiple=True, metavar="NAME", help="Delete this; may be "
                                                                       "repeated.")  # fmt: skip
@dry_run_option
@yes_option
@formatted
def command(
    folders: tuple[str, ...], names: tuple[str, ...], dry_run: bool, yes: bool, output: str
) -> int:
    """Show what takes space in a data folder and can be deleted, largest first: data set aside by
    repairs, remains of an interrupted backup, deleted topics that can be restored, and each topic
    with what its retention deletes within a day. Only what --delete names is deleted.

    \b
    penstock storage reclaim
    penstock storage reclaim /srv/a /srv/b --delete orders-0.0000019a0b1c2d3e4f5061728394a5b6-stray
    """
    paths = [os.path.abspath(folder) for folder in folders or (DEFAULT_DATA,)]
    disk = OsDisk()
    found = reclaim.find_space(disk, paths, reclaim.now())
    if names:
        chosen = [one for one in found if one.name in names]
        if not dry_run:
            size = sum(one.bytes for one in chosen)
            confirm_names(f"{in_bytes(size)} are deleted", list(names), yes=yes, things="folders")
            reclaim.remove(paths, list(names), found)
        found = chosen
    emit([asdict(one) for one in found], output)
    for path in paths:
        space = disk.space(path)
        print_note(f"{path}: {in_bytes(space.free)} of {in_bytes(space.total)} are free")
    return OK
