"""`penstock group members`."""

import click

from appliance.cli.complete import group_names
from appliance.cli.exits import OK
from appliance.cli.groups import Place, described
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.watch import watched


@click.command("members")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@formatted
@connected
@watched
def command(link: Link, names: tuple[str, ...], output: str) -> int:
    """Show who is in a group, from where, and what each member reads.

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
            "assignment": assignment(one.places),
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


def assignment(places: tuple[Place, ...]) -> list[str]:
    """`topic:0,1` for each topic."""
    found: dict[str, list[str]] = {}
    for topic, number in places:
        found.setdefault(topic, []).append(str(number))
    return [f"{topic}:{','.join(numbers)}" for topic, numbers in found.items()]
