"""`penstock cluster invite`."""

from pathlib import Path
from typing import Final

import click

from console.flags.connection import connected
from console.flags.units import Seconds, in_words
from console.model.asking.failure import FAILED, OK, Failure, usage
from console.model.asking.link import Link
from console.model.cluster import joining
from console.model.cluster.invitations import VALID_S, shows_certificates
from console.model.secure.folder import DEFAULT_FOLDER, SecureFolder
from console.show.output import print_note

_JOINS_S: Final = 300.0
"""How long a node may take from its certificate until it runs."""


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
@click.option(
    "--host",
    metavar="NAME",
    help="The name or address of the next node's host, where nodes show certificates: the node gets"
    " one for it.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    help="With --host: where the next node gets its certificate, while this command runs.  "
    "[default: the third one behind that of clients]",
)
@click.option(
    "--folder",
    metavar="DIR",
    default=DEFAULT_FOLDER,
    help=f"With --host: where the authority is kept.  [default: ./{DEFAULT_FOLDER}]",
)
@connected
def command(
    link: Link,
    listen: str | None,
    valid_s: float,
    host: str | None,
    port: int | None,
    folder: str,
) -> int:
    """Print the command that starts the next node of this cluster on its host.

    A single appliance becomes a cluster this way without interruption: it opens a controller
    listener at the port after that of its clients. The command contains a token that admits one
    node, once; from the first invitation on, joining needs a token. Run this command on the host of
    a node. Other hosts are served without authentication, which the node must allow by its setting
    penstock.listeners.without.authentication.

    Where nodes show certificates (penstock secure init), run it with --host where the authority's
    key is: it waits for the node, signs its certificate, and ends when the node runs. Ctrl-C
    withdraws the token.

    \b
    penstock cluster invite
    penstock cluster invite --listen :9092
    penstock cluster invite --host b.example.org
    """
    if host is not None:
        if listen is not None:
            raise usage("--listen and --host exclude each other: --listen opens without TLS")
        return _with_certificate(link, host, port, SecureFolder(Path(folder)), valid_s)
    if shows_certificates(link):
        raise usage(
            "the nodes of this cluster show certificates to each other, and so does the next one",
            "penstock cluster invite --host NAME, on the host that keeps the authority's key",
        )
    found = joining.invite(link, listen, valid_s)
    if found.opened:
        print_note(f"listener opened at {found.opened}; it is opened again at each start")
    if found.upgraded:
        print_note("kraft.version is 1 now: voters can be added and removed")
    if found.here:
        print_note(
            "this cluster advertises a loopback address: only nodes of this host can join. For"
            " others: penstock cluster invite --listen :9092"
        )
    print(found.line)
    return OK


def _with_certificate(
    link: Link, host: str, port: int | None, folder: SecureFolder, valid_s: float
) -> int:
    from console.model.secure.inviting import Inviting

    if not shows_certificates(link):
        raise usage(
            "the nodes of this cluster do not show certificates to each other",
            "leave out --host; docs/secure.md says how a cluster changes to TLS",
        )
    with Inviting(link, folder, host, port) as inviting:
        print(f"penstock cluster join {inviting.token}", flush=True)
        print_note(
            f"this waits {in_words(valid_s)} for it to be typed on {host}; Ctrl-C withdraws it"
        )
        if not inviting.serve(valid_s, lambda who, why: print_note(f"not served: {who}: {why}")):
            raise Failure("no node came in time: the token has expired")
        print_note(f"{host} has a certificate, as node {inviting.number}")
        if inviting.wait(_JOINS_S):
            print_note(f"node {inviting.number} runs")
            return OK
    print_note(f"node {inviting.number} does not run yet: see what it says on its host")
    return FAILED
