"""`penstock service uninstall`."""

import click

from console.flags.confirm import undoable
from console.flags.output import formatted
from console.flags.service import for_user
from console.model.asking.failure import OK
from console.model.service import installing, place
from console.show.output import emit, print_note


@click.command("uninstall")
@for_user
@undoable
@formatted
def command(for_user: bool, output: str) -> int:
    """Stop the service cleanly and remove the units that `install` wrote. Data and settings stay.

    \b
    penstock service uninstall --user
    """
    found = (place.of_user if for_user else place.of_host)(None, None)
    removed = installing.uninstall(found)
    emit(
        [{"removed": str(path)} for path in removed], output, name="removed",
        empty=f"there is no {found.unit}",
    )  # fmt: skip
    if removed:
        print_note("data and settings are still there")
    return OK
