"""`penstock consume`: reads from an offset, a time or the end, and commits nothing; or as a member
of a group, which remembers how far it has come."""

import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import click

from console.flags.complete import group_names, topic_names
from console.flags.connection import connected
from console.flags.decoding import decoded
from console.model.decoding.choosing import Decoders
from console.model.failure import usage
from console.model.link import Link
from console.model.offsets import Place, parse
from console.model.reading import Reading, Record, read, read_as_member
from console.model.topics import choose, listed
from console.root import OUTPUT_KEY
from console.show.output import say
from console.show.record_format import printer
from console.show.record_json import decoded as decoded_line
from console.show.record_json import meta, whole

Show = Callable[[Record], bytes]


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
@decoded
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
    decoders: Decoders | None,
) -> None:
    """Read records; stops at the end with -e, after N with -n, else with Ctrl-C.

    Without -f and -J each value is printed with a newline. Letters of -f: %t topic, %p partition,
    %o offset, %T timestamp in ms, %k key, %v value, %h headers, %K %V lengths (-1: null), %%.

    With --decode key and value are printed as they read: JSON with every digit, MessagePack, Avro
    and Protobuf as JSON, what fits nothing in hexadecimal digits; -J says which and why.

    \b
    penstock consume orders -e
    penstock consume orders -o -10 -e -f '%p %o %k=%v\\n'
    penstock consume orders -o @2013-01-31T12:00:00Z -o e@2013-02-01 -J
    penstock consume orders -g billing -n 100
    penstock consume -r '^orders' -o end
    penstock consume orders -e --decode auto
    penstock consume orders -e --decode avro --schema order.avsc
    """
    if (as_json or meta_only) and record_format:
        raise usage("-f and -J: one of the two")
    chosen = _topics(link, topics, regex)
    first, last = _places(offsets, group)
    unread = _Unread()
    show: Show = meta if meta_only else whole
    if not (as_json or meta_only):
        show = printer(record_format if record_format is not None else "%v\\n")
    if decoders is not None and not meta_only:
        show = _decoding(decoders, None if as_json else show, unread)
    if group is None:
        found = read(link, chosen, partitions, first, last, exit_at_end=exit_at_end, count=count)
    elif partitions or last is not None:
        raise usage("-g goes with neither -p nor -o e@TIME: the group says what is read")
    else:
        found = read_as_member(link, group, chosen, first, exit_at_end=exit_at_end, count=count)
    shown = _print(found, show)
    say(f"{shown} record{'s'[: shown != 1]}{unread}")


class _Unread:
    """What a decoder that was asked for did not fit: how many, and the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def __str__(self) -> str:
        return f", {self.count} of them in hexadecimal digits; {self.first}" if self.count else ""


def _decoding(decoders: Decoders, show: Show | None, unread: _Unread) -> Show:
    """show: a record with decoded bytes in it; None: as a line of JSON."""

    def decode(record: Record) -> bytes:
        key = decoders.key(record.topic, record.key)
        value = decoders.value(record.topic, record.key, record.value)
        if wrong := [part.reason for part in (key, value) if part is not None and part.reason]:
            place = f"{record.topic} partition {record.partition} offset {record.offset}"
            unread.first = unread.first or f"{place}: {wrong[0]}"
            unread.count += 1
        if show is None:
            return decoded_line(record, key, value)
        texts = [None if part is None else part.line.encode() for part in (key, value)]
        return show(replace(record, key=texts[0], value=texts[1]))

    return decode


def _print(found: Reading, show: Show) -> int:
    """How many records were printed."""
    out, shown = sys.stdout.buffer, 0
    with closing(found):
        for records in found:
            out.write(b"".join(map(show, records)))
            out.flush()
            shown += len(records)
    return shown


def _topics(link: Link, topics: tuple[str, ...], regex: str | None) -> list[str]:
    if bool(topics) == bool(regex):
        raise usage("name topics, or say -r PATTERN: one of the two")
    if not regex:
        return list(dict.fromkeys(topics))
    found = list(choose(listed(link), (), regex, internal=False))
    if not found:
        say(f"no topic is found by {regex}")
    return found


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
