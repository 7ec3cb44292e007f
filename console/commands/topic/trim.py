"""`penstock topic trim`: irrecoverable, so the name is typed."""

import time

import click

from console.flags.complete import topic_names
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import long_formatted
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.topics import topics
from console.show.output import Row, emit, print_note, rows_of


@click.command("trim")
@click.argument("name", shell_complete=topic_names)
@click.option(
    "-o", "--offset", "offset", required=True, metavar="OFFSET",
    help="Delete records before: 47, +2, -3, end, @2013-01-31, 2h (older than).",
)  # fmt: skip
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(0),
    multiple=True,
    metavar="N",
    help="Only these partitions.",
)
@yes_option
@dry_run_option
@long_formatted
@connected
def command(
    link: Link,
    name: str,
    offset: str,
    partitions: tuple[int, ...],
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Delete the records of a topic before an offset, in each partition.

    \b
    penstock topic trim orders -o 2h --dry-run
    penstock topic trim orders -p 0 -o 4711
    penstock topic trim orders -o end --yes
    """
    found = topics.trimmed(link, name, offset, partitions, time.time_ns() // 1_000_000)
    deleted = sum(one.deleted for one in found)
    plan: list[Row] = [
        {name: value for name, value in row.items() if name != "end"} for row in rows_of(found)
    ]
    if dry_run or not deleted:
        print_note(
            f"{deleted} records would be deleted" if dry_run else "there is nothing to delete"
        )
        emit(plan, output, name="partition")
        return OK
    confirm_names(f"This deletes {deleted} records of {name}", [name], yes=yes)
    starts = topics.trim(link, name, {row["partition"]: row["new_start"] for row in plan})
    emit([row | {"new_start": starts[row["partition"]]} for row in plan], output, name="partition")
    return OK
