"""`penstock acl list`."""

import click

from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.resource import resource_flags
from console.flags.watch import watched
from console.model.access.acls import Target, about, entry, principal_of, rules
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.show.output import emit


@click.command("list")
@click.argument("principals", nargs=-1, metavar="[PRINCIPAL]...")
@resource_flags
@formatted
@connected
@watched
def command(
    link: Link, principals: tuple[str, ...], targets: tuple[Target, ...], output: str
) -> int:
    """List ACLs. With --topic and the like: all that decide about this name, prefixes and * among
    them; with --prefixed: those of exactly this prefix.

    \b
    penstock acl list
    penstock acl list loader --topic orders
    penstock acl list --topic orders. --prefixed
    """
    named = {principal_of(one) for one in principals}
    found = [
        one
        for one in rules(link)
        if (not named or one.principal in named)
        and (not targets or any(about(one, target) for target in targets))
    ]
    narrowed = " for that" if named or targets else ""
    rows = [entry(one)._asdict() for one in found]
    emit(rows, output, name="principal", empty=f"no ACL{narrowed}")
    return OK
