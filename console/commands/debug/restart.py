"""`penstock debug restart`."""

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.local.renewal import renew
from console.show.output import emit


@click.command("restart")
@click.argument("names", metavar="[PROCESS]...", nargs=-1)
@located
@formatted
def command(names: tuple[str, ...], data: str, output: str) -> int:
    """Restart network processes of an appliance of this host while clients stay connected.

    PROCESS is a name that penstock status shows, for example netproc-0; without it every network
    process restarts, one after the other. A process answers its open requests first, then hands its
    connections over to its successor; new requests wait some tens of ms. Requests that wait for
    other group members delay the handover by ten seconds at most.

    \b
    penstock debug restart
    penstock debug restart netproc-0 --data /var/lib/penstock
    """
    rows = [
        {
            "process": one.name,
            "before": one.before,
            "pid": one.pid,
            "connections": one.connections,
            "took_ms": round(one.took_s * 1000),
        }
        for one in renew(data, names)
    ]
    emit(rows, output, name="process")
    return OK
