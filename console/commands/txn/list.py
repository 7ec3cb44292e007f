"""`penstock txn list`."""

import time

import click

from console.flags.complete import transactional_ids
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.transactions.open_transactions import Open, Watch
from console.model.transactions.transactions import Listed, listed
from console.show.output import Row, emit


@click.command("list")
@click.argument("names", nargs=-1, metavar="[ID]...", shell_complete=transactional_ids)
@click.option(
    "-r", "--regex", metavar="PATTERN", help="Only ids that match this regular expression."
)
@click.option("--state", metavar="STATE", help="Only ids in this state: ongoing, empty, …")
@click.option("--open", "only_open", is_flag=True, help="Only ids with an open transaction.")
@formatted
@connected
@watched
def command(
    link: Link,
    names: tuple[str, ...],
    regex: str | None,
    state: str | None,
    only_open: bool,
    output: str,
) -> int:
    """List transactional ids. The form "wide" also shows the records that open transactions hold
    back.

    \b
    penstock txn list
    penstock txn list --open -o wide -w
    """
    found = [
        one
        for one in listed(link, names, regex)
        if (state is None or one.state == state.lower()) and (one.is_open or not only_open)
    ]
    rows: list[Row] = [
        {
            "name": one.name,
            "state": one.state,
            "producer_id": one.producer_id,
            "coordinator": one.coordinator,
        }
        for one in found
    ]
    if output == "wide":
        _measure(link, rows, found)
    narrowed = names or regex or state or only_open
    emit(rows, output, empty="no matching transactional id" if narrowed else "no transactional id")
    return OK


def _measure(link: Link, rows: list[Row], found: list[Listed]) -> None:
    """Adds columns about open transactions."""
    ids = [one.name for one in found if one.is_open]
    looked = Watch(link, keeps=False).read_transactions(time.time(), only=ids) if ids else ()
    opened: dict[str, Open] = {one.name: one for one in looked}
    for row in rows:
        one = opened.get(row["name"])
        row["epoch"] = one.epoch if one else None
        row["open_s"] = one.age_s if one else None
        row["partitions"] = len(one.held) if one else None
        row["held_back"] = one.records if one else None
        row["oldest_s"] = one.seconds if one else None
