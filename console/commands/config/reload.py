"""`penstock config reload`."""

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.model.failure import NEGATIVE, OK
from console.model.reloading import reload
from console.show.output import Row, emit, say


@click.command("reload")
@located
@formatted
def command(data: str, output: str) -> int:
    """Let an appliance of this host read its settings file again. Exit code 4: something of it
    needs a restart.

    What may change while it runs holds when this ends; what needs a restart is shown with both
    values. A file that is wrong changes nothing. What its command line says still wins over the
    file, and what was set while it runs (penstock config set) over both.

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
        say("the file says what is in force")
    elif later:
        say(f"{later} of {len(found)} need a restart")
    return NEGATIVE if later else OK
