"""`penstock group lag`."""

import click

from appliance.cli.complete import group_names
from appliance.cli.exits import OK, usage
from appliance.cli.group_places import places, total
from appliance.cli.groups import described, listed
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.watch import watched


@click.command("lag")
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=group_names)
@click.option("-r", "--regex", metavar="PATTERN", help="Groups whose name this expression finds.")
@click.option("-p", "--partitions", is_flag=True, help="A row for each partition.")
@click.option("--no-seconds", is_flag=True, help="Records only: nothing is read for it.")
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
    """Show how far groups are behind: of each topic, or of each partition with -p.

    LAG counts records; LAG S is the age of the oldest record that was not read. Without a name
    these are all groups.

    \b
    penstock group lag -w
    penstock group lag billing -p -o json
    """
    if names and regex:
        raise usage("name the groups, or a pattern with --regex: one of the two")
    found = list(dict.fromkeys(names)) or [one.group_id for one in listed(link, (), regex)]
    groups = described(link, found)
    where = places(link, groups, seconds=not no_seconds)
    rows: list[Row] = []
    for group in groups:
        mine = where[group.name]
        rows += _each(group.name, mine) if partitions else _topics(group.name, mine)
    emit(rows, output, name="group")
    return OK


def _each(name: str, mine: list[Row]) -> list[Row]:
    columns = ("topic", "partition", "committed", "end", "lag", "lag_s")
    return [{"group": name} | {column: row[column] for column in columns} for row in mine]


def _topics(name: str, mine: list[Row]) -> list[Row]:
    by_topic: dict[str, list[Row]] = {}
    for row in mine:
        by_topic.setdefault(row["topic"], []).append(row)
    rows = []
    for topic, parts in by_topic.items():
        lag, seconds = total(parts)
        one: Row = {"group": name, "topic": topic, "partitions": len(parts)}
        rows.append(one | {"lag": lag, "lag_s": seconds})
    return rows
