"""`penstock acl can` and `who-can`: what the rules decide, without trying it."""

import click

from appliance.authorization.standard import ANY_HOST
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.resource import only_one, resource_flags
from console.model.access import acls
from console.model.access.acls import Target
from console.model.asking.failure import NEGATIVE, OK
from console.model.asking.link import Link
from console.show.output import emit, emit_one


@click.command("can")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("name", metavar="OPERATION")
@resource_flags
@click.option(
    "--host", metavar="ADDRESS", default=ANY_HOST, help="From this address.  [default: from any]"
)
@formatted
@connected
def can(
    link: Link, principal: str, name: str, targets: tuple[Target, ...], host: str, output: str
) -> int:
    """Say whether PRINCIPAL may do OPERATION on one resource, and which ACL or setting decides it.
    Exit status 4 means no.

    \b
    penstock acl can loader write --topic orders
    penstock acl can loader write --topic orders --host 10.0.0.5 -o json
    """
    who, operation, target = (
        acls.principal_of(principal),
        acls.operation_of(name),
        only_one(targets),
    )
    acls.check_applies(operation, target)
    verdict = acls.can(acls.policy(link), who, host, operation, target)
    row = {"principal": who, "allowed": verdict.allowed, "why": verdict.why}
    emit_one(row, output, name="principal")
    return OK if verdict.allowed else NEGATIVE


@click.command("who-can")
@click.argument("name", metavar="OPERATION")
@resource_flags
@formatted
@connected
def who_can(link: Link, name: str, targets: tuple[Target, ...], output: str) -> int:
    """Show every principal that ACLs or super.users let do OPERATION on one resource, and why.
    User:* is everybody else.

    \b
    penstock acl who-can write --topic orders
    penstock acl who-can alter --cluster
    """
    operation, target = acls.operation_of(name), only_one(targets)
    acls.check_applies(operation, target)
    found = acls.who_can(acls.policy(link), operation, target)
    emit([one._asdict() for one in found], output, name="principal", empty="nobody may")
    return OK
