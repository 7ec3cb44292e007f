"""`penstock group list`."""

import click

from console.flags.complete import group_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.groups.groups import described, listed
from console.model.groups.lag import places, total
from console.show.output import Row, emit


@click.command("list")
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=group_names)
@click.option(
    "-r", "--regex", metavar="PATTERN", help="Only names that match this regular expression."
)
@click.option("--state", metavar="STATE", help="Only groups in this state: stable, empty, …")
@formatted
@connected
@watched
def command(
    link: Link, names: tuple[str, ...], regex: str | None, state: str | None, output: str
) -> int:
    """List consumer groups of both protocols. The form "wide" also shows members and lag.

    \b
    penstock group list
    penstock group list --state stable -o wide -w
    """
    rows: list[Row] = [
        {"group": one.name, "state": one.state, "type": one.kind}
        for one in listed(link, names, regex)
        if state is None or one.state == state.lower()
    ]
    narrowed = names or regex or state
    if output == "wide":
        _count(link, rows)
    emit(rows, output, name="group", empty="no matching group" if narrowed else "no group")
    return OK


def _count(link: Link, rows: list[Row]) -> None:
    groups = described(link, [row["group"] for row in rows])
    where = places(link, groups, seconds=False)
    for row, group in zip(rows, groups, strict=True):
        mine = where[group.name]
        row["members"] = len(group.members)
        row["topics"] = len({place.topic for place in mine})
        row["lag"] = total(mine)[0]
