"""`penstock restart`."""

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.model.failure import OK
from console.model.succession import restart
from console.show.output import emit


@click.command("restart")
@located
@formatted
def command(data: str, output: str) -> int:
    """Restart an appliance of this host, as it was started, by the program that is installed now:
    after an upgrade the new one. Nobody is refused meanwhile: who connects waits.

    First that program says whether it would start (penstock up --check); if not, everything goes on
    and exit code 1 says why. Then the appliance ends in order, and its process goes on as the new
    one, with the same process id, the same listening sockets and the connections of its clients; a
    node of a cluster hands over what it leads and closes those.

    \b
    penstock restart
    penstock restart --data /var/lib/penstock
    """
    found = restart(data)
    row = {
        "pid": found.pid,
        "took_ms": round(found.took_s * 1000),
        "away_ms": found.away_ms,
    }
    emit([row], output, name="pid")
    return OK
