"""`penstock cluster invite`."""

import click

from console.flags.connection import connected
from console.flags.units import Seconds, in_words
from console.model import joining
from console.model.failure import OK
from console.model.invitations import VALID_S
from console.model.link import Link
from console.show.output import say


@click.command("invite")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Let clients and nodes of other hosts come there, too: for an appliance that is alone.",
)
@click.option(
    "--valid",
    "valid_s",
    metavar="TIME",
    type=Seconds(1),
    default=VALID_S,
    help=f"How long its token lets the node in.  [default: {in_words(VALID_S)}]",
)
@connected
def command(link: Link, listen: str | None, valid_s: float) -> int:
    """Print the command that starts the next node of this cluster, to be typed on its host.

    One appliance alone becomes a cluster so, and serves all the while: it opens a listener for
    controllers, at the port behind that of its clients. The line has a token that lets in this one
    node, once; from the first invitation on, only who has one joins. To be typed on the host of a
    node, where localhost reaches it.

    \b
    penstock cluster invite
    penstock cluster invite --listen :9092
    """
    found = joining.invite(link, listen, valid_s)
    if found.opened:
        say(f"it listens at {found.opened} now, and after each start")
    if found.upgraded:
        say("kraft.version is 1 now: voters can come and go")
    if found.here:
        say(
            "this cluster is told by the name of a loopback address: only nodes of this host can"
            " join. For others: penstock cluster invite --listen :9092"
        )
    print(found.line)
    return OK
