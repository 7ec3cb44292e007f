"""`penstock acl add` and `remove`. Adding can be undone; removing may stop clients, so it is
confirmed."""

import click

from appliance.authorization import operations as kafka
from appliance.authorization.standard import ALLOW, ANY_HOST, DENY, AclRule
from console.flags.confirm import confirm, dry_run_option, undoable, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.resource import resource_flags
from console.model.access import acls
from console.model.access.acls import Target
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.show.output import emit

_PRODUCER = {
    kafka.TOPIC: (kafka.WRITE, kafka.DESCRIBE, kafka.CREATE),
    kafka.TRANSACTIONAL_ID: (kafka.WRITE, kafka.DESCRIBE),
}
_CONSUMER = {kafka.TOPIC: (kafka.READ, kafka.DESCRIBE), kafka.GROUP: (kafka.READ,)}

hosts_option = click.option(
    "--host", "hosts", metavar="ADDRESS", multiple=True,
    help="Only from this address; may be repeated.  [default: *, from all]",
)  # fmt: skip


@click.command("add")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("names", nargs=-1, metavar="[OPERATION]...")
@resource_flags
@hosts_option
@click.option("--deny", is_flag=True, help="Deny it, whatever other ACLs allow.")
@click.option("--producer", is_flag=True, help="All that a producer needs.")
@click.option("--consumer", is_flag=True, help="All that a consumer needs.")
@undoable
@dry_run_option
@formatted
@connected
def add(
    link: Link,
    principal: str,
    names: tuple[str, ...],
    targets: tuple[Target, ...],
    hosts: tuple[str, ...],
    deny: bool,
    producer: bool,
    consumer: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Allow PRINCIPAL operations on resources; it holds from the next request on.

    PRINCIPAL: a user's name, or TYPE:NAME; User:* is everybody. OPERATION: read, write, create,
    delete, alter, describe, describe-configs, alter-configs, cluster-action, idempotent-write,
    all. --producer and --consumer stand for those that such clients need.

    \b
    penstock acl add loader --producer --topic orders
    penstock acl add reader --consumer --topic orders. --group billing --prefixed
    penstock acl add User:* all --topic secret --deny --host 10.0.0.5
    """
    if deny and (producer or consumer):
        raise usage("--producer and --consumer allow; with --deny name the operations")
    pairs = _pairs(names, targets, producer=producer, consumer=consumer)
    permission = DENY if deny else ALLOW
    who = [acls.principal_of(principal)]
    wanted = acls.product(who, hosts or (ANY_HOST,), permission, pairs)
    there = set(acls.rules(link))
    missing = [one for one in wanted if one not in there]
    if missing and not dry_run:
        acls.add(link, missing)
    done = "would be added" if dry_run else "added"
    tell_changes([(one, "exists" if one in there else done) for one in wanted], output)
    return OK


@click.command("remove")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("names", nargs=-1, metavar="[OPERATION]...")
@resource_flags
@hosts_option
@click.option("--deny", is_flag=True, help="Only ACLs that deny.  [default: all]")
@yes_option
@dry_run_option
@formatted
@connected
def remove(
    link: Link,
    principal: str,
    names: tuple[str, ...],
    targets: tuple[Target, ...],
    hosts: tuple[str, ...],
    deny: bool,
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Remove the ACLs of PRINCIPAL that have one of these operations, resources and hosts; what is
    not named does not narrow it. Names are taken as they were given to add: --topic orders leaves
    the ACLs of prefixes and of * alone.

    It holds from the next request of every connection on, and is confirmed unless --yes is given.

    \b
    penstock acl remove loader --topic orders --dry-run
    penstock acl remove reader read --topic orders. --prefixed --yes
    penstock acl remove loader --yes
    """
    who = acls.principal_of(principal)
    operations = {acls.operation_of(one) for one in names}
    gone = [
        one
        for one in acls.rules(link)
        if one.principal == who
        and (not operations or one.operation in operations)
        and (not targets or Target(one.kind, one.name, one.pattern) in targets)
        and (not hosts or one.host in hosts)
        and (not deny or one.permission == DENY)
    ]
    if gone and not dry_run:
        confirm(f"This removes {_listed(gone)}", yes=yes)
        acls.remove(link, gone)
    done = "would be removed" if dry_run else "removed"
    tell_changes([(one, done) for one in gone], output)
    return OK


def _pairs(
    names: tuple[str, ...], targets: tuple[Target, ...], *, producer: bool, consumer: bool
) -> list[tuple[Target, int]]:
    """Resources and operations, as they are typed. Raises Failure (USAGE)."""
    operations = [acls.operation_of(one) for one in names]
    if not targets:
        raise usage("on what? Say --topic, --group, --transactional-id or --cluster")
    if not (operations or producer or consumer):
        raise usage("what may it do? Name operations, or say --producer or --consumer")
    found: dict[tuple[Target, int], None] = {}
    for target in targets:
        wanted = list(operations)
        wanted += _PRODUCER.get(target.kind, ()) if producer else ()
        wanted += _CONSUMER.get(target.kind, ()) if consumer else ()
        if not wanted:
            flag = "--producer" if producer else "--consumer"
            raise usage(f"{flag} matches nothing on {target.name}", "name its operations")
        for operation in wanted:
            acls.check_applies(operation, target)
            found[target, operation] = None
    return list(found)


def _listed(gone: list[AclRule]) -> str:
    first = "; ".join(acls.sentence(one) for one in gone[:3])
    return first if len(gone) <= 3 else f"{first} and {len(gone) - 3} more"


def tell_changes(rows: list[tuple[AclRule, str]], output: str) -> None:
    """Shows rules with their status, in the form that `output` names."""
    told = [acls.entry(one)._asdict() | {"status": status} for one, status in rows]
    emit(told, output, name="principal", empty="no ACL for that")
