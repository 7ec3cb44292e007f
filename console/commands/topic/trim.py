"""`penstock topic trim`: irrecoverable, so the name is typed."""

import time

import click

from console.flags.complete import topic_names
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import long_formatted
from console.model import topics
from console.model.failure import OK, Failure, usage
from console.model.link import Link
from console.model.offsets import bounds, parse, partitions_of, resolve
from console.show.output import Row, emit, say


@click.command("trim")
@click.argument("name", shell_complete=topic_names)
@click.option(
    "-o", "--offset", "offset", required=True, metavar="OFFSET",
    help="Records before it go: 47, +2, -3, end, @2013-01-31, 2h (older than).",
)  # fmt: skip
@click.option(
    "-p", "--partitions", type=click.IntRange(0), multiple=True, metavar="N", help="Only these."
)
@yes_option
@dry_run_option
@long_formatted
@connected
def command(
    link: Link,
    name: str,
    offset: str,
    partitions: tuple[int, ...],
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Delete the records of a topic that lie before an offset, in each partition.

    \b
    penstock topic trim orders -o 2h --dry-run
    penstock topic trim orders -p 0 -o 4711
    penstock topic trim orders -o end --yes
    """
    plan = _plan(link, name, offset, partitions)
    deleted = sum(row["deleted"] for row in plan)
    if dry_run or not deleted:
        say(f"{deleted} records would be deleted" if dry_run else "there is nothing to delete")
        emit(plan, output, name="partition")
        return OK
    confirm_names(f"This deletes {deleted} records of {name}", [name], yes=yes)
    starts = topics.trim(link, name, {row["partition"]: row["new_start"] for row in plan})
    emit([row | {"new_start": starts[row["partition"]]} for row in plan], output, name="partition")
    return OK


def _plan(link: Link, name: str, offset: str, partitions: tuple[int, ...]) -> list[Row]:
    place, stop = parse(offset, time.time_ns() // 1_000_000)
    if stop:
        raise usage("-o e@TIME says where to stop, which has no meaning here")
    places = partitions_of(link, [name], partitions)
    known = bounds(link, places)
    plan: list[Row] = []
    for key, target in resolve(link, places, place, known).items():
        edge = known[key]
        if target > edge.high:
            raise Failure(
                f"{name} partition {key[1]} ends at {edge.high}, before {target}",
                name="OFFSET_OUT_OF_RANGE",
                kafka_code=1,
            )
        last = max(target, edge.low)
        row: Row = {"partition": key[1], "start": edge.low, "new_start": last}
        plan.append(row | {"deleted": last - edge.low})
    return plan
