"""`penstock user remove`."""

from collections.abc import Sequence

import click

from appliance.authorization.standard import AclRule
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.model.access import acls, users
from console.model.asking.failure import OK, Failure
from console.model.asking.link import Link
from console.show.output import print_note


@click.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--keep-acls", is_flag=True, help="Leave the ACLs of these users.")
@yes_option
@dry_run_option
@connected
def command(link: Link, names: tuple[str, ...], keep_acls: bool, yes: bool, dry_run: bool) -> int:
    """Remove the credentials of users, who cannot log in any more, and their ACLs.

    Connections that have logged in stay open, until connections.max.reauth.ms where that is set;
    without their ACLs they may do nothing. The ACLs are listed before they go; with --keep-acls a
    user that is added by the same name has them again.

    \b
    penstock user remove loader
    penstock user remove loader --keep-acls --yes
    """
    known = {one.name: one for one in users.all_users(link)}
    for name in names:
        if name not in known:
            raise Failure(
                f"there is no user {name}", "penstock user list", name="RESOURCE_NOT_FOUND"
            )
    gone = [] if keep_acls else _rules_of(link, names)
    if dry_run:
        print_note(f"would be removed: {', '.join(names)}")
    for one in gone if dry_run or not yes else ():
        print_note(f"{'would be removed' if dry_run else 'is removed, too'}: {acls.sentence(one)}")
    if dry_run:
        return OK
    confirm_names("Remove users", list(names), yes=yes, things="users")
    for name in dict.fromkeys(names):
        users.remove(link, known[name])
        print_note(f"user {name} is removed")
    acls.remove(link, gone)
    for one in gone:
        print_note(f"removed: {acls.sentence(one)}")
    return OK


def _rules_of(link: Link, names: Sequence[str]) -> list[AclRule]:
    """The ACLs of these users; none without an authorizer. Raises Failure."""
    principals = {f"User:{name}" for name in names}
    try:
        return [one for one in acls.rules(link) if one.principal in principals]
    except Failure as failure:
        if failure.name != "SECURITY_DISABLED":
            raise
        return []
