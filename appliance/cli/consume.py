"""`penstock consume`: reads from an offset, a time or the end, and commits nothing; or as a member
of a group, which remembers how far it has come."""

import time
from typing import TYPE_CHECKING

import click

from appliance.cli.complete import group_names, topic_names
from appliance.cli.consume_read import Show, Stops, read_as_member, read_assigned
from appliance.cli.exits import Failure, usage
from appliance.cli.link import Link, connected
from appliance.cli.offsets import END, START, Place, bounds, parse, partitions_of, resolve
from appliance.cli.output import say
from appliance.cli.record_format import printer
from appliance.cli.record_json import meta, whole
from appliance.cli.root import OUTPUT_KEY
from appliance.cli.topic_list import all_names, choose

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition


def _json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta[OUTPUT_KEY] = "jsonl"
    return value


@click.command("consume")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=topic_names)
@click.option("-r", "--regex", metavar="PATTERN", help="The topics that this expression finds.")
@click.option(
    "-g", "--group", metavar="NAME", shell_complete=group_names,
    help="As a member of this group: it knows where to go on, and remembers what was printed.",
)  # fmt: skip
@click.option(
    "-o", "--offset", "offsets", multiple=True, metavar="OFFSET",
    help="In each partition: start, end, 47, +2, -3, @TIME, 2h; e@TIME says where to stop."
    "  [default: start]",
)  # fmt: skip
@click.option("-n", "-c", "--num", "count", type=click.IntRange(0), metavar="N", help="Only N.")
@click.option(
    "-p", "--partitions", type=click.IntRange(0), multiple=True, metavar="N", help="Only these."
)
@click.option("-f", "--record-format", metavar="F", help=r"%k %v %o %p %t %T %h \n \t; see above.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="Stop when all has been read.")
@click.option("-J", "--json", "as_json", is_flag=True, is_eager=True, callback=_json,
              help="A line of JSON for each record.")  # fmt: skip
@click.option("--meta-only", is_flag=True, help="JSON without key, value and headers.")
@connected
def command(
    link: Link,
    topics: tuple[str, ...],
    regex: str | None,
    group: str | None,
    offsets: tuple[str, ...],
    count: int | None,
    partitions: tuple[int, ...],
    record_format: str | None,
    exit_at_end: bool,
    as_json: bool,
    meta_only: bool,
) -> None:
    """Read records; stops at the end with -e, after N with -n, else with Ctrl-C.

    Without -f and -J each value is printed with a newline. Letters of -f: %t topic, %p partition,
    %o offset, %T timestamp in ms, %k key, %v value, %h headers, %K %V lengths (-1: null), %%.

    \b
    penstock consume orders -e
    penstock consume orders -o -10 -e -f '%p %o %k=%v\\n'
    penstock consume orders -o @2013-01-31T12:00:00Z -o e@2013-02-01 -J
    penstock consume orders -g billing -n 100
    penstock consume -r '^orders' -o end
    """
    if (as_json or meta_only) and record_format:
        raise usage("-f and -J: one of the two")
    chosen = _topics(link, topics, regex)
    first, last = _places(offsets, group)
    if as_json or meta_only:
        show: Show = meta if meta_only else whole
    else:
        show = printer(record_format if record_format is not None else "%v\\n")
    if group is not None:
        if partitions or last is not None:
            raise usage("-g goes with neither -p nor -o e@TIME: the group says what is read")
        if count != 0 and chosen:
            _tell(_as_member(link, group, chosen, show, first, exit_at_end, count))
        return
    assigned, stops = _assignment(link, chosen, partitions, first, last)
    if count == 0 or not assigned:
        return
    # The end of a partition is told by an empty answer, which the broker holds back for so long.
    patience_ms = 20 if exit_at_end else 500
    consumer = link.consumer(enable_partition_eof=True, fetch_wait_max_ms=patience_ms)
    try:
        consumer.assign(assigned)
        shown = read_assigned(
            consumer,
            show,
            {(p.topic, p.partition) for p in assigned},
            stops,
            exit_at_end or last is not None,
            count,
        )
    finally:
        consumer.close()
    _tell(shown)


def _tell(shown: int) -> None:
    say(f"{shown} record{'s'[: shown != 1]}")


def _topics(link: Link, topics: tuple[str, ...], regex: str | None) -> list[str]:
    if bool(topics) == bool(regex):
        raise usage("name topics, or say -r PATTERN: one of the two")
    if not regex:
        return list(dict.fromkeys(topics))
    found = list(choose(all_names(link), (), regex, internal=False))
    if not found:
        say(f"no topic is found by {regex}")
    return found


def _as_member(
    link: Link,
    group: str,
    topics: list[str],
    show: Show,
    first: Place,
    exit_at_end: bool,
    count: int | None,
) -> int:
    if first.number or first.kind not in (START, END):
        raise usage(
            "-o start or -o end is where a group begins in partitions that it has not read yet",
            "penstock group seek moves it to any offset or time",
        )
    partitions_of(link, topics)  # a topic that is not there would be waited for
    consumer = link.consumer(
        group_id=group,
        enable_auto_commit=True,
        enable_auto_offset_store=False,
        auto_offset_reset="earliest" if first.kind == START else "latest",
        enable_partition_eof=True,
    )
    try:
        return read_as_member(consumer, topics, show, exit_at_end, count)
    finally:
        consumer.close()


def _places(offsets: tuple[str, ...], group: str | None) -> tuple[Place, Place | None]:
    now_ms = time.time_ns() // 1_000_000
    first = last = None
    for text in offsets:
        if text == "stored" and group is not None:
            continue  # that is what a group does
        place, stop = parse(text, now_ms)
        if stop and last is None:
            last = place
        elif not stop and first is None:
            first = place
        else:
            raise usage("-o: one place to begin and one e@TIME to stop at most")
    return first or Place("start"), last


def _assignment(
    link: Link,
    topics: list[str],
    wanted: tuple[int, ...],
    first: Place,
    last: Place | None,
) -> "tuple[list[TopicPartition], Stops]":
    places = partitions_of(link, topics, wanted)
    known = bounds(link, places)
    starts = resolve(link, places, first, known)
    stops = resolve(link, places, last, known) if last else {}
    chosen = []
    for one in places:
        key = one.topic, one.partition
        if not known[key].low <= starts[key] <= known[key].high:
            raise Failure(
                f"{one.topic} partition {one.partition} has no offset {starts[key]}",
                f"it goes from {known[key].low} to {known[key].high}",
                name="OFFSET_OUT_OF_RANGE",
                kafka_code=1,
            )
        one.offset = starts[key]
        if key not in stops or stops[key] > starts[key]:
            chosen.append(one)
    return chosen, stops
