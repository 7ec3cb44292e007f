"""`penstock consume`: reads from an offset, a time or the end, and commits nothing; or as a member
of a group, which remembers how far it has come."""

import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Final

import click

from console.flags.complete import group_names, topic_names
from console.flags.connection import connected
from console.flags.decoding import decoded
from console.model.asking.failure import usage
from console.model.asking.link import Link
from console.model.decoding.choosing import Decoders
from console.model.records.filters import Filter
from console.model.records.reading import Reading, Record, read, read_as_member
from console.model.records.seeking import Seek, parse_seek
from console.model.topics.topics import choose, listed
from console.root import OUTPUT_KEY
from console.show import record_csv as csv
from console.show.output import print_note
from console.show.record_format import printer
from console.show.record_json import decoded as decoded_line
from console.show.record_json import meta, whole
from console.streams import write_raw

Show = Callable[[Record], bytes]


def _json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta[OUTPUT_KEY] = "jsonl"
    return value


_FILTERS: Final = """--filter: every term must match, and terms with ! must not. A plain word is
    searched in key, value and headers regardless of case, "words" exactly, /expression/ as RE2,
    /…/i regardless of case. key: value: header: header.NAME: partition: limit where. $.a.b[0] = 5
    compares a JSON value with = != < <= > >= or ~ (contains); [*] is any element. key:null matches
    a missing key."""


@click.command("consume", epilog=_FILTERS)
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=topic_names)
@click.option("-r", "--regex", metavar="PATTERN", help="Topics that match this regular expression.")
@click.option(
    "-g", "--group", metavar="NAME", shell_complete=group_names,
    help="Join this group: continue from its committed offsets, and commit.",
)  # fmt: skip
@click.option(
    "-o", "--offset", "offsets", multiple=True, metavar="OFFSET",
    help="Start in each partition: start, end, 47, +2, -3, @TIME, 2h; stop: e@TIME or "
         "FROM..TO; 0:47 is partition 0 only.  [default: start]",
)  # fmt: skip
@click.option(
    "--filter", "filter_text", default="", metavar="F",
    help="""Only records that match: word, "Word", /regex/, key:…, header.NAME:…, $.a = 5,"""
    " !…; see below.",
)  # fmt: skip
@click.option(
    "-n", "-c", "--num", "count", type=click.IntRange(0), metavar="N", help="Stop after N records."
)
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(0),
    multiple=True,
    metavar="N",
    help="Only these partitions.",
)
@click.option("-f", "--record-format", metavar="F", help=r"%k %v %o %p %t %T %h \n \t; see above.")
@click.option(
    "-e", "--exit", "exit_at_end", is_flag=True, help="Stop at the end of the partitions."
)
@click.option("-J", "--json", "as_json", is_flag=True, is_eager=True, callback=_json,
              help="Print a line of JSON for each record.")  # fmt: skip
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print CSV with a header line; binary data in base64."
)
@click.option("--raw", is_flag=True, help="Do not escape control characters on a terminal.")
@click.option("--meta-only", is_flag=True, help="Print JSON without key, value and headers.")
@connected
@decoded
def command(
    link: Link,
    topics: tuple[str, ...],
    regex: str | None,
    group: str | None,
    offsets: tuple[str, ...],
    filter_text: str,
    count: int | None,
    partitions: tuple[int, ...],
    record_format: str | None,
    exit_at_end: bool,
    as_json: bool,
    as_csv: bool,
    raw: bool,
    meta_only: bool,
    decoders: Decoders | None,
) -> None:
    """Read records until the end with -e, N records with -n, else until Ctrl-C. On a terminal
    control characters are escaped, except with --raw.

    Without -f and -J each value is printed with a newline. Fields of -f: %t topic, %p partition, %o
    offset, %T timestamp in ms, %k key, %v value, %h headers, %K %V lengths (-1: null), %%.

    With --decode, keys and values are decoded: JSON with every digit; MessagePack, Avro and
    Protobuf as JSON; anything else as hexadecimal digits. -J shows the detected format and the
    reason.

    \b
    penstock consume orders -e
    penstock consume orders -o -10 -e -f '%p %o %k=%v\\n'
    penstock consume orders -o @2013-01-31T12:00:00Z -o e@2013-02-01 -J
    penstock consume orders -o '0:100..200 1:-10' -J
    penstock consume orders -e --filter 'key:eu- $.total >= 100 !"test order"'
    penstock consume orders -g billing -n 100
    penstock consume -r '^orders' -o end
    penstock consume orders -e --decode auto
    penstock consume orders -e --decode avro --schema order.avsc
    """
    if (as_json or meta_only) + as_csv + (record_format is not None) > 1:
        raise usage("-f, -J and --csv: one of them")
    chosen = _topics(link, topics, regex)
    seek, keep = _seek(offsets, group), Filter(filter_text)
    unread = _Unread()
    show = _shown(record_format, as_json, as_csv, meta_only)
    if decoders is not None and not meta_only:
        show = _decoding(decoders, None if as_json else show, unread)
    if group is None:
        found = read(
            link, chosen, partitions, seek, keep,
            exit_at_end=exit_at_end, count=count, remark=print_note,
        )  # fmt: skip
    elif partitions or filter_text or seek.rest is None or seek.named or seek.has_stop:
        raise usage("-g takes only -o start or -o end: the group's offsets say what is read")
    else:
        first = seek.rest.first
        found = read_as_member(
            link, group, chosen, first, exit_at_end=exit_at_end, count=count, remark=print_note
        )
    shown = _print(found, show, csv.TITLES if as_csv else b"", raw=raw)
    print_note(f"{shown} record{'s'[: shown != 1]}{unread}")


class _Unread:
    """Records that the chosen decoder did not fit: how many, and the first."""

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


def _shown(record_format: str | None, as_json: bool, as_csv: bool, meta_only: bool) -> Show:
    if meta_only:
        return meta
    if as_json:
        return whole
    if as_csv:
        return csv.line
    return printer(record_format if record_format is not None else "%v\\n")


def _print(found: Reading, show: Show, head: bytes, *, raw: bool) -> int:
    """How many records were printed."""
    out, shown = sys.stdout.buffer, 0
    write = write_raw if raw else out.write
    write(head)
    with closing(found):
        for records in found:
            write(b"".join(map(show, records)))
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
        print_note(f"no topic is found by {regex}")
    return found


def _seek(offsets: tuple[str, ...], group: str | None) -> Seek:
    # `stored` is what a group does, and nothing without one.
    said = [one for one in offsets if one != "stored" or group is None]
    return parse_seek(" ".join(said), time.time_ns() // 1_000_000)
