"""`penstock topic list`."""

import fnmatch
from collections.abc import Iterable

import click

from console.flags.complete import topic_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.groups.offsets import Lost
from console.model.storage import disk
from console.model.topics import topics
from console.show.output import Row, emit, print_note, rows_of, telling


@click.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=topic_names)
@click.option(
    "-r", "--regex", metavar="PATTERN", help="Only names that match this regular expression."
)
@click.option("-i", "--internal", is_flag=True, help="Include internal topics (__name).")
@click.option(
    "--deleted", is_flag=True, help="List deleted topics that can be restored, and until when."
)
@formatted
@connected
@watched
def command(
    link: Link,
    names: tuple[str, ...],
    regex: str | None,
    internal: bool,
    deleted: bool,
    output: str,
) -> int:
    """List topics. The form "wide" also shows their records and their bytes on the disks of the
    broker. A NAME may have * and ? for any letters: no topic's name has them.

    \b
    penstock topic list
    penstock topic list 'orders.*'
    penstock topic list -r '^orders' -o wide
    penstock topic list --deleted
    """
    if deleted:
        if regex or internal:
            raise usage("--deleted goes with names alone")
        found = [one for one in topics.deleted(link) if not names or one.name in names]
        emit(rows_of(found), output, empty="no deleted topic can be brought back")
        return OK
    listed = topics.listed(link)
    chosen = topics.choose(listed, _matching(names, listed), regex, internal=internal)
    rows: list[Row] = [
        {
            "name": one.name,
            "partitions": len(one.partitions),
            "replicas": one.replicas,
            "under_replicated": one.under_replicated,
        }
        for one in chosen.values()
    ]
    narrow = telling(rows)
    if output == "wide":
        lost: Lost = {}
        records = topics.records(link, chosen.values(), lost)
        sizes = disk.of_topics(link, {one.name: one.partitions for one in chosen.values()})
        rows = [
            row | {"records": records[row["name"]], "bytes": sizes.get(row["name"])} for row in rows
        ]
        for name, number in lost:
            print_note(
                f"{name} partition {number} is not counted; penstock topic describe {name} says why"
            )
    empty = "no topic matches" if names or regex else "there is no topic yet"
    emit(rows, output, narrow=narrow, empty=empty)
    return OK


def _matching(names: tuple[str, ...], listed: Iterable[str]) -> tuple[str, ...]:
    """The names, and for one with * or ? the topics that it matches, or itself where none does."""
    found: list[str] = []
    for name in names:
        found += fnmatch.filter(listed, name) or [name]
    return tuple(found)
