"""`penstock user list`."""

import click

from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.access.users import all_users
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.show.output import Row, emit


@click.command("list")
@formatted
@connected
@watched
def command(link: Link, output: str) -> int:
    """List the users with credentials of SCRAM, and by which mechanisms.

    Users of PLAIN in the settings of a listener (sasl.jaas.config) are not shown.

    \b
    penstock user list
    penstock user list -o json
    """
    rows: list[Row] = [
        {
            "user": one.name,
            "mechanisms": ",".join(sorted(one.mechanisms)),
            "iterations": min(one.mechanisms.values(), default=None),
        }
        for one in all_users(link)
    ]
    emit(rows, output, name="user", empty="no user has credentials; penstock user add makes one")
    return OK
