"""`penstock group describe` and `members`."""

import click

from console.flags.complete import group_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.groups.groups import Place, described
from console.model.groups.lag import places, total
from console.model.topics.retention import looked
from console.show.expiring import expiring, warn
from console.show.output import Row, emit, plain, rows_of, table

_NARROW = ("topic", "partition", "committed", "end", "lag", "lag_s", "client_id", "host")


@click.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@click.option("-s", "--summary", is_flag=True, help="Show only the summary.")
@formatted
@connected
@watched
def command(link: Link, names: tuple[str, ...], summary: bool, output: str) -> int:
    """Show the state, the members and, for each partition, committed offset and lag.

    Lag in seconds is the age of the oldest unread record. A warning shows unread records that
    retention deletes soon.

    \b
    penstock group describe billing
    penstock group describe billing reports -o json
    penstock group describe billing -w
    """
    groups = described(link, list(dict.fromkeys(names)))
    where = places(link, groups)
    expiry = looked(link, groups, where)
    rows: list[Row] = []
    for group in groups:
        lag, seconds = total(where[group.name])
        row: Row = {
            "group": group.name,
            "state": group.state,
            "type": group.kind,
            "assignor": group.assignor or None,
            "coordinator": group.coordinator,
            "members": len(group.members),
            "lag": lag,
            "lag_s": seconds,
            "expiring": expiring(expiry, group.name),
        }
        rows.append(row if summary else row | {"partitions": rows_of(where[group.name])})
    if output in ("table", "wide"):
        for row in rows:
            _print(row, output)
        warn(expiry)
    elif output == "csv" and not summary:
        emit(
            [{"group": row["group"]} | place for row in rows for place in row["partitions"]], output
        )
    else:
        emit(rows, output, name="group")
    return OK


def _print(row: Row, output: str) -> None:
    for key, value in row.items():
        if key not in ("partitions", "expiring"):
            print(f"{key.replace('_', ' '):<16}{plain(value)}")
    print()
    if row.get("partitions"):
        columns = list(row["partitions"][0])
        table([c for c in columns if output == "wide" or c in _NARROW], row["partitions"])
        print()


@click.command("members")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@formatted
@connected
@watched
def members(link: Link, names: tuple[str, ...], output: str) -> int:
    """Show the members of a group, their addresses and assigned partitions.

    \b
    penstock group members billing
    penstock group members billing -o wide
    """
    rows: list[Row] = [
        {
            "group": group.name,
            "client_id": one.client_id,
            "host": one.host.lstrip("/"),
            "instance_id": one.instance_id,
            "partitions": len(one.places),
            "member": one.member_id,
            "assignment": _assignment(one.places),
        }
        for group in described(link, list(dict.fromkeys(names)))
        for one in group.members
    ]
    emit(
        rows,
        output,
        narrow=("group", "client_id", "host", "instance_id", "partitions", "assignment"),
        name="member",
    )
    return OK


def _assignment(places: tuple[Place, ...]) -> list[str]:
    """`topic:0,1` for each topic."""
    found: dict[str, list[str]] = {}
    for topic, number in places:
        found.setdefault(topic, []).append(str(number))
    return [f"{topic}:{','.join(numbers)}" for topic, numbers in found.items()]
