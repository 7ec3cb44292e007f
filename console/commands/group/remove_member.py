"""`penstock group remove-member`: disruptive, so what would go is shown first."""

import click

from console.flags.complete import group_names
from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.groups.groups import described
from console.model.groups.members import named, remove
from console.show.outcomes import show_outcomes
from console.show.output import Row, emit


@click.command("remove-member")
@click.argument("name", metavar="GROUP", shell_complete=group_names)
@click.argument("members", nargs=-1, required=True, metavar="MEMBER...")
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link, name: str, members: tuple[str, ...], yes: bool, dry_run: bool, output: str
) -> int:
    """Remove members from a group, for example static members that do not return.

    MEMBER is an instance id, a member id, or a client id that only one member has. Its partitions
    are reassigned. A living member joins again at its next heartbeat.

    \b
    penstock group members billing -o wide
    penstock group remove-member billing billing-host-7
    """
    (group,) = described(link, [name])
    found = named(group, members)
    if dry_run:
        plan: list[Row] = [
            {
                "member": one.member_id,
                "instance_id": one.instance_id,
                "client_id": one.client_id,
                "host": one.host.lstrip("/"),
                "partitions": len(one.places),
                "status": "would be removed",
            }
            for one in found
        ]
        emit(plan, output, name="member")
        return OK
    called = ", ".join(f"{one.instance_id or one.client_id} at {one.host.lstrip('/')}"
                       for one in found[:5])  # fmt: skip
    confirm(f"This removes {len(found)} member(s) from {name}: {called}", yes=yes)
    return show_outcomes(remove(link, group, found), "removed", output)
