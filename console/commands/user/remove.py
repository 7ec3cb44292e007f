"""`penstock user remove`."""

import click

from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.model.failure import OK, Failure
from console.model.link import Link
from console.model.users import all_users, remove
from console.show.output import say


@click.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@dry_run_option
@connected
def command(link: Link, names: tuple[str, ...], yes: bool, dry_run: bool) -> int:
    """Remove the credentials of users: they log in no more.

    Connections that have logged in stay open, until connections.max.reauth.ms where that is set.

    \b
    penstock user remove loader
    """
    known = {one.name: one for one in all_users(link)}
    for name in names:
        if name not in known:
            raise Failure(
                f"there is no user {name}", "penstock user list", name="RESOURCE_NOT_FOUND"
            )
    if dry_run:
        say(f"would be removed: {', '.join(names)}")
        return OK
    confirm_names("Remove users", list(names), yes=yes, things="users")
    for name in dict.fromkeys(names):
        remove(link, known[name])
        say(f"user {name} is removed")
    return OK
