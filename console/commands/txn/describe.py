"""`penstock txn describe`."""

import time

import click

from console.flags.complete import transactional_ids
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.transactions.open_transactions import Watch
from console.model.transactions.transactions import described
from console.show.output import Row, emit, plain, rows_of, table


@click.command("describe")
@click.argument(
    "names", nargs=-1, required=True, metavar="ID...",
    shell_complete=transactional_ids,
)  # fmt: skip
@formatted
@connected
@watched
def command(link: Link, names: tuple[str, ...], output: str) -> int:
    """Show transactional ids and, for open transactions, the records they hold back.

    START is the first offset of the transaction in a partition, STABLE the last stable offset, HELD
    BACK the number of records behind it, SECONDS the age of the first.

    \b
    penstock txn describe copier
    penstock txn describe copier -o json
    """
    wanted = list(dict.fromkeys(names))
    known = described(link, wanted)
    ids = [one.name for one in known if one.is_open]
    looked = Watch(link, keeps=False).read_transactions(time.time(), only=ids) if ids else ()
    opened = {one.name: one for one in looked}
    rows: list[Row] = []
    for one in known:
        now = opened.get(one.name)
        rows.append(
            {
                "name": one.name,
                "state": one.state,
                "producer_id": one.producer_id,
                "epoch": one.epoch,
                "timeout_ms": one.timeout_ms,
                "coordinator": one.coordinator,
                "open_s": now.age_s if now else None,
                "held_back": now.records if now else 0,
                "partitions": rows_of(now.held) if now else [],
            }
        )
    if output in ("table", "wide"):
        for row in rows:
            _print(row)
    elif output == "csv":
        emit([{"name": row["name"]} | place for row in rows for place in row["partitions"]], output)
    else:
        emit(rows, output)
    return OK


def _print(row: Row) -> None:
    for key, value in row.items():
        if key != "partitions":
            print(f"{key.replace('_', ' '):<16}{plain(value)}")
    print()
    if row["partitions"]:
        table(list(row["partitions"][0]), row["partitions"])
        print()
