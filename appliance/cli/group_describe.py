"""`penstock group describe`."""

import click

from appliance.cli.complete import group_names
from appliance.cli.exits import OK
from appliance.cli.group_places import places, total
from appliance.cli.groups import described
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted, plain, table
from appliance.cli.watch import watched

_NARROW = ("topic", "partition", "committed", "end", "lag", "lag_s", "client_id", "host")


@click.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@click.option("-s", "--summary", is_flag=True, help="Only the summary.")
@formatted
@connected
@watched
def command(link: Link, names: tuple[str, ...], summary: bool, output: str) -> int:
    """Show state, members and, for each partition, committed offset and lag.

    Lag in seconds is the age of the oldest record that was not read.

    \b
    penstock group describe billing
    penstock group describe billing reports -o json
    penstock group describe billing -w
    """
    groups = described(link, list(dict.fromkeys(names)))
    where = places(link, groups)
    rows: list[Row] = []
    for group in groups:
        lag, seconds = total(where[group.name])
        row: Row = {
            "name": group.name,
            "state": group.state,
            "type": group.kind,
            "assignor": group.assignor or None,
            "coordinator": group.coordinator,
            "members": len(group.members),
            "lag": lag,
            "lag_s": seconds,
        }
        rows.append(row if summary else row | {"partitions": where[group.name]})
    if output in ("table", "wide"):
        for row in rows:
            _print(row, output)
    elif output == "csv" and not summary:
        emit([{"name": row["name"]} | place for row in rows for place in row["partitions"]], output)
    else:
        emit(rows, output)
    return OK


def _print(row: Row, output: str) -> None:
    for key, value in row.items():
        if key != "partitions":
            print(f"{key.replace('_', ' '):<16}{plain(value)}")
    print()
    if row.get("partitions"):
        columns = list(row["partitions"][0])
        table([c for c in columns if output == "wide" or c in _NARROW], row["partitions"])
        print()
