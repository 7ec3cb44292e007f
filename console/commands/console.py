"""`penstock console`."""

import sys

import click

from console.flags.connection import connected
from console.model.failure import OK, usage
from console.model.link import Link


@click.command("console")
@click.argument("place", nargs=-1, metavar="[PLACE]")
@connected
def command(link: Link, place: tuple[str, ...]) -> int:
    """Watch it on one screen: what needs attention, rates, topics, groups.

    It only reads. Press ? for its keys. PLACE is where it begins: overview, topics, topic NAME,
    groups, group NAME or log. Rates and processes are shown of an appliance of this host.

    \b
    penstock console
    penstock console topic orders
    penstock console -b kafka.example.org:9092
    """
    from console.screens.places import HOME, NoPlace, jump

    try:
        first = jump(" ".join(place)) if place else HOME
    except NoPlace as wrong:
        raise usage(str(wrong)) from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise usage("it needs a terminal", "penstock stats and penstock topic list write to a pipe")
    from console.screens.app import run

    quick = {"reconnect.backoff.max.ms": "1000"}  # what is back is shown at once
    run(Link(link.bootstrap, quick | link.properties, link.timeout_s, read_only=True), first)
    return OK
