"""`penstock config reload`."""

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.model.asking.failure import NEGATIVE, OK
from console.model.local.reloading import reload
from console.show.output import Row, emit, print_note


@click.command("reload")
@located
@formatted
def command(data: str, output: str) -> int:
    """Reload the settings file of an appliance of this host. Exit code 4: a change needs a restart.

    Dynamic settings apply when the command ends; settings that need a restart are shown with both
    values. An invalid file changes nothing. The appliance's command line still overrides the file,
    and settings changed at run time (penstock config set) override both.

    \b
    penstock config reload --data /var/lib/penstock
    """
    found = reload(data)
    rows: list[Row] = [
        {
            "key": one.key,
            "before": one.before,
            "after": one.after,
            "status": "changed" if one.at_once else "needs a restart",
        }
        for one in found
    ]
    emit(rows, output, name="key")
    later = sum(not one.at_once for one in found)
    if not found:
        print_note("nothing to change: the settings match the file")
    elif later:
        print_note(f"{later} of {len(found)} need a restart")
    return NEGATIVE if later else OK
