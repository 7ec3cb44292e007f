"""`penstock group lag`."""

from collections.abc import Iterator
from itertools import groupby

import click

from console.flags.complete import group_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.groups.groups import described, listed
from console.model.groups.lag import Position, places, total
from console.model.topics.retention import looked
from console.show.expiring import warn
from console.show.output import Row, emit

_EACH = ("topic", "partition", "committed", "end", "lag", "lag_s")


@click.command("lag")
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=group_names)
@click.option(
    "-r", "--regex", metavar="PATTERN", help="Groups whose names match this regular expression."
)
@click.option("-p", "--partitions", is_flag=True, help="Show a row for each partition.")
@click.option(
    "--no-seconds", is_flag=True, help="Show records only; no record is read to compute its age."
)
@formatted
@connected
@watched
def command(
    link: Link,
    names: tuple[str, ...],
    regex: str | None,
    partitions: bool,
    no_seconds: bool,
    output: str,
) -> int:
    """Show the lag of groups by topic, or by partition with -p.

    LAG is in records; LAG S is the age of the oldest unread record in seconds. Without a name all
    groups are shown. A warning shows unread records that retention deletes soon.

    \b
    penstock group lag -w
    penstock group lag billing -p -o json
    """
    if names and regex:
        raise usage("name the groups, or a pattern with --regex: one of the two")
    found = list(dict.fromkeys(names)) or [one.name for one in listed(link, (), regex)]
    groups = described(link, found)
    where = places(link, groups, seconds=not no_seconds)
    rows: list[Row] = []
    for group in groups:
        mine = _each(where[group.name]) if partitions else _topics(where[group.name])
        rows += [{"group": group.name} | row for row in mine]
    emit(rows, output, name="group")
    if output in ("table", "wide"):
        warn(looked(link, groups, where))
    return OK


def _each(mine: list[Position]) -> Iterator[Row]:
    for one in mine:
        yield {column: getattr(one, column) for column in _EACH}


def _topics(mine: list[Position]) -> Iterator[Row]:
    for topic, found in groupby(mine, key=lambda one: one.topic):
        parts = list(found)
        lag, seconds = total(parts)
        yield {"topic": topic, "partitions": len(parts), "lag": lag, "lag_s": seconds}
