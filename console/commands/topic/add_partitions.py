"""`penstock topic add-partitions`: Kafka's tools take the total, others the number to add; here it
is always said which."""

import click

from console.commands.topic.create import PARTITIONS
from console.flags.complete import topic_names
from console.flags.confirm import confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.topics import topics
from console.show.output import Row, emit


@click.command("add-partitions")
@click.argument("name", shell_complete=topic_names)
@click.option(
    "--to", "total", type=PARTITIONS, metavar="TOTAL", help="Number of partitions in total."
)
@click.option(
    "-n", "--num", "add", type=PARTITIONS, metavar="ADD", help="Number of partitions to add."
)
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    name: str,
    total: int | None,
    add: int | None,
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Add partitions to a topic. New records of a key may go to another partition than before.

    \b
    penstock topic add-partitions orders --to 6
    penstock topic add-partitions orders -n 3 --yes
    """
    if (total is None) == (add is None):
        raise usage("say --to TOTAL or -n ADD: one of the two")
    now = topics.partition_counts(link, [name])[name]
    wanted = total if total is not None else now + (add or 0)
    if wanted < now:
        raise usage(f"{name} has {now} partitions already; they cannot become fewer")
    if wanted == now:
        emit([_row(name, now, now, "the same")], output)
        return OK
    most = topics.PARTITIONS_MOST
    if wanted > most:
        raise usage(f"{name} would have {wanted} partitions; at most {most} can be asked for")
    change = f"{name} has {now} partitions; {wanted - now} more make {wanted}"
    if not dry_run:
        confirm(f"{change}, and keys may move to other partitions", yes=yes)
    topics.add_partitions(link, name, wanted, dry_run=dry_run)
    emit([_row(name, now, wanted, "would be changed" if dry_run else "changed")], output)
    return OK


def _row(name: str, before: int, after: int, status: str) -> Row:
    row: Row = {"name": name, "before": before, "added": after - before, "after": after}
    return row | {"status": status}
