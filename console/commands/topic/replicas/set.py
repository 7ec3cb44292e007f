"""`penstock topic replicas set`."""

import click

from console.flags.complete import topic_names
from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.model.asking.link import Link
from console.model.topics import replica_changes
from console.show.moving import follow
from console.show.output import emit, print_note, table
from console.show.planned import facts_told, rows_planned

wait_option = click.option("--wait", is_flag=True, help="Wait and show the progress.")


@click.command("set")
@click.argument("topic", shell_complete=topic_names)
@click.argument("wanted", nargs=-1, required=True, metavar="N|PARTITION:NODE,NODE...")
@wait_option
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    topic: str,
    wanted: tuple[str, ...],
    wait: bool,
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Set the replication factor of a topic, or the replicas of its partitions, preferred leader
    first.

    With a number, replicas are spread over racks, new replicas go to the nodes that have the
    fewest, and existing replicas stay where possible. A new replica copies all records before an
    old one is removed.

    \b
    penstock topic replicas set orders 3 --wait
    penstock topic replicas set orders 0:1,2,3 1:2,3,1 --dry-run
    """
    try:
        change = replica_changes.setting(link, topic, replica_changes.parse(wanted))
    except Failure as failure:
        if failure.name != replica_changes.NOTHING:
            raise
        print_note(f"{topic}: {failure.hint}")
        emit([], output)
        return OK
    plan = rows_planned(change)
    for sentence in change.says:
        print_note(sentence)
    if dry_run:
        print_note(facts_told(change))
        emit([row | {"status": "would be"} for row in plan], output, name="partition")
        return OK
    if not yes:
        table(list(plan[0]), plan, err=True)
    confirm(facts_told(change), yes=yes)
    status = change.apply(link)
    if wait:
        follow(link, [topic])
        status = replica_changes.DONE
    elif status != replica_changes.DONE:
        print_note(f"penstock topic replicas status {topic} shows how far it is")
    emit([row | {"status": status} for row in plan], output, name="partition")
    return OK
