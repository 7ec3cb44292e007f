"""`penstock restart`."""

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.local.succession import restart
from console.show.output import emit


@click.command("restart")
@located
@formatted
def command(data: str, output: str) -> int:
    """Restart an appliance of this host with its own options, by the installed program: after an
    upgrade that is the new one. New connections wait meanwhile; none is refused.

    The installed program first checks whether it would start (penstock up --check). If not, the
    running appliance continues and the exit code is 1. Otherwise the appliance shuts down cleanly
    and its process becomes the new one, with the same process id, listening sockets and client
    connections. A node of a cluster hands over its leaderships and closes its client connections.

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
