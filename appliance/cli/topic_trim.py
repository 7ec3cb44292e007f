"""`penstock topic trim`: irrecoverable, so the name is typed."""

import time

import click

from appliance.cli.complete import topic_names
from appliance.cli.confirm import confirm_names, dry_run_option, yes_option
from appliance.cli.exits import OK, Failure, usage
from appliance.cli.link import Link, connected
from appliance.cli.offsets import bounds, parse, partitions_of, resolve
from appliance.cli.output import Row, emit, long_formatted, say


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
    from confluent_kafka import TopicPartition

    place, stop = parse(offset, time.time_ns() // 1_000_000)
    if stop:
        raise usage("-o e@TIME says where to stop, which has no meaning here")
    places = partitions_of(link, [name], partitions)
    known = bounds(link, places)
    targets = resolve(link, places, place, known)
    plan: list[Row] = []
    for key, target in targets.items():
        edge = known[key]
        if target > edge.high:
            raise Failure(
                f"{name} partition {key[1]} ends at {edge.high}, before {target}",
                name="OFFSET_OUT_OF_RANGE",
                kafka_code=1,
            )
        last = max(target, edge.low)
        plan.append(
            {"partition": key[1], "start": edge.low, "new_start": last, "deleted": last - edge.low}
        )
    deleted = sum(row["deleted"] for row in plan)
    if dry_run or not deleted:
        say(f"{deleted} records would be deleted" if dry_run else "there is nothing to delete")
        emit(plan, output, name="partition")
        return OK
    confirm_names(f"This deletes {deleted} records of {name}", [name], yes=yes)
    wanted = [TopicPartition(name, row["partition"], row["new_start"]) for row in plan]
    answers = link.admin().delete_records(wanted, request_timeout=link.timeout_s)
    for one, answer in answers.items():
        low = link.wait(answer).low_watermark
        next(row for row in plan if row["partition"] == one.partition)["new_start"] = low
    emit(plan, output, name="partition")
    return OK
