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
    help="Also serve clients and nodes of other hosts at this address, for a single appliance.",
)
@click.option(
    "--valid",
    "valid_s",
    metavar="TIME",
    type=Seconds(1),
    default=VALID_S,
    help=f"Validity of the token.  [default: {in_words(VALID_S)}]",
)
@connected
def command(link: Link, listen: str | None, valid_s: float) -> int:
    """Print the command that starts the next node of this cluster on its host.

    A single appliance becomes a cluster this way without interruption: it opens a controller
    listener at the port after that of its clients. The command contains a token that admits one
    node, once; from the first invitation on, joining needs a token. Run this command on the host of
    a node. Other hosts are served without authentication, which the node must allow by its setting
    penstock.listeners.without.authentication.

    \b
    penstock cluster invite
    penstock cluster invite --listen :9092
    """
    found = joining.invite(link, listen, valid_s)
    if found.opened:
        say(f"listener opened at {found.opened}; it is opened again at each start")
    if found.upgraded:
        say("kraft.version is 1 now: voters can be added and removed")
    if found.here:
        say(
            "this cluster advertises a loopback address: only nodes of this host can join. For"
            " others: penstock cluster invite --listen :9092"
        )
    print(found.line)
    return OK
