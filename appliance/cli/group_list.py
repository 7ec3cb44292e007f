"""`penstock group list`."""

import click

from appliance.cli.complete import group_names
from appliance.cli.exits import OK
from appliance.cli.group_places import places, total
from appliance.cli.groups import described, listed, state_name
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.watch import watched


@click.command("list")
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=group_names)
@click.option("-r", "--regex", metavar="PATTERN", help="Only names that this expression finds.")
@click.option("--state", metavar="STATE", help="Only those in this state: stable, empty, …")
@formatted
@connected
@watched
def command(
    link: Link, names: tuple[str, ...], regex: str | None, state: str | None, output: str
) -> int:
    """List consumer groups of both protocols. The form "wide" counts members and lag too.

    \b
    penstock group list
    penstock group list --state stable -o wide -w
    """
    found = listed(link, names, regex)
    rows: list[Row] = [
        {
            "name": one.group_id,
            "state": state_name(one.state),
            "type": one.type.name.lower(),
        }
        for one in found
        if state is None or state_name(one.state) == state.lower()
    ]
    narrowed = names or regex or state
    if output == "wide":
        _count(link, rows)
    emit(rows, output, empty="no group is there" + (" of that kind" if narrowed else ""))
    return OK


def _count(link: Link, rows: list[Row]) -> None:
    groups = described(link, [row["name"] for row in rows])
    where = places(link, groups, seconds=False)
    for row, group in zip(rows, groups, strict=True):
        mine = where[group.name]
        row["members"] = len(group.members)
        row["topics"] = len({place["topic"] for place in mine})
        row["lag"] = total(mine)[0]
