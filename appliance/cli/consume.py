"""`penstock consume`: reads by `assign`, from an offset, a time or the end; no group, nothing is
committed."""

import base64
import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from appliance.cli.complete import topic_names
from appliance.cli.exits import Failure, usage
from appliance.cli.link import Link, connected, failure_of
from appliance.cli.offsets import Place, bounds, parse, partitions_of, resolve
from appliance.cli.output import say
from appliance.cli.record_format import printer
from appliance.cli.root import OUTPUT_KEY

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_AT_ONCE: Final = 1000
_WAIT_S: Final = 0.2

Stops = dict[tuple[str, int], int]
"""Partition → the offset before which to stop."""


def _json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta[OUTPUT_KEY] = "jsonl"
    return value


@click.command("consume")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)
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
    penstock consume orders -o end
    """
    if (as_json or meta_only) and record_format:
        raise usage("-f and -J: one of the two")
    first, last = _places(offsets)
    if as_json or meta_only:
        show: Callable[[Any], bytes] = _meta if meta_only else _whole
    else:
        show = printer(record_format if record_format is not None else "%v\\n")
    assigned, stops = _assignment(link, list(dict.fromkeys(topics)), partitions, first, last)
    if count == 0 or not assigned:
        return
    # The end of a partition is told by an empty answer, which the broker holds back for so long.
    patience_ms = 20 if exit_at_end else 500
    consumer = link.consumer(enable_partition_eof=True, fetch_wait_max_ms=patience_ms)
    try:
        consumer.assign(assigned)
        shown = _read(consumer, show, {(p.topic, p.partition) for p in assigned}, stops,
                      exit_at_end or last is not None, count)  # fmt: skip
    finally:
        consumer.close()
    say(f"{shown} record{'s'[: shown != 1]}")


def _places(offsets: tuple[str, ...]) -> tuple[Place, Place | None]:
    now_ms = time.time_ns() // 1_000_000
    first = last = None
    for text in offsets:
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


def _read(
    consumer: "Consumer",
    show: Callable[[Any], bytes],
    unread: set[tuple[str, int]],
    stops: Stops,
    exit_at_end: bool,
    count: int | None,
) -> int:
    """Print until the end: how many records were printed. Raises Failure."""
    from confluent_kafka import KafkaError

    shown = 0
    out = sys.stdout.buffer
    while unread:
        for message in _next(consumer, min(_AT_ONCE, (count or _AT_ONCE + shown) - shown)):
            key = str(message.topic()), int(message.partition() or 0)
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    if exit_at_end and key not in stops:
                        unread.discard(key)
                elif not error.retriable() and error.code() != KafkaError._ALL_BROKERS_DOWN:
                    raise failure_of(error)
                continue
            offset = int(message.offset() or 0)
            stop = stops.get(key)
            if stop is None or offset < stop:
                out.write(show(message))
                shown += 1
            if stop is not None and offset >= stop - 1:
                unread.discard(key)
            if shown == count:
                unread.clear()
        out.flush()
    return shown


def _next(consumer: "Consumer", most: int) -> "list[Message]":
    """What has arrived, at once; at least one unless nothing arrives for a while."""
    first = consumer.poll(_WAIT_S)
    if first is None:
        return []
    return [first, *(consumer.consume(most - 1, 0) if most > 1 else ())]


def _meta(message: Any) -> bytes:
    return _line(_head(message))


def _whole(message: Any) -> bytes:
    row = _head(message)
    _put(row, "key", message.key())
    _put(row, "value", message.value())
    if headers := message.headers():
        row["headers"] = []
        for key, value in headers:
            one = {"key": key}
            _put(one, "value", value)
            row["headers"].append(one)
    return _line(row)


def _head(message: Any) -> dict[str, Any]:
    kind, timestamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp if kind else None,
    }


def _put(row: dict[str, Any], name: str, data: bytes | None) -> None:
    """Text as text; what is not UTF-8 in base64 under NAME_base64, so that nothing is lost."""
    try:
        row[name] = None if data is None else data.decode()
    except UnicodeDecodeError:
        assert data is not None
        row[f"{name}_base64"] = base64.b64encode(data).decode()


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"
