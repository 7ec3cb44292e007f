"""`penstock cluster invite`."""

import click

from console.flags.connection import connected
from console.model import joining
from console.model.failure import OK
from console.model.link import Link
from console.show.output import say


@click.command("invite")
@connected
def command(link: Link) -> int:
    """Print the command that starts the next node of this cluster, to be typed on its host.

    One appliance alone becomes a cluster so; it needs a listener for controllers, and serves all
    the while. The line is no secret and no key: whoever reaches the ports can join.

    \b
    penstock cluster invite
    """
    found = joining.invite(link)
    if found.upgraded:
        say("kraft.version is 1 now: voters can come and go")
    if found.here:
        say(
            "this cluster is told by the name of a loopback address: only nodes of this host can"
            " join. For others start it with listeners and advertised.listeners that they reach"
        )
    print(found.line)
    return OK
