"""`penstock event list`."""

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.model.asking.failure import OK, usage
from console.model.local.events import KEPT, LEVELS, Event, Feed, level_of, wanted
from console.show.figures import moment_in_zone
from console.show.output import Row, emit, plain, print_note

_EVERY_S: Final = 0.3
_LINES: Final = ("table", "wide")


@click.command("list")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@located
@click.option("-f", "--follow", is_flag=True, help="Follow new events until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(1, KEPT), default=100, show_default=True,
    help="Number of latest events.",
)  # fmt: skip
@click.option(
    "--level", default=LEVELS[-1], metavar="LEVEL",
    help=f"Lowest level: {', '.join(LEVELS)}.  [default: {LEVELS[-1]}]",
)  # fmt: skip
@click.option(
    "--topic", default="", metavar="NAME", help="Only events of this topic; * matches any text."
)
@click.option(
    "--group",
    default="",
    metavar="NAME",
    help="Only events of this consumer group; * matches any text.",
)
@click.option(
    "--client", default="", metavar="NAME", help="Only events of this client id, address or user."
)
@formatted
def command(
    words: tuple[str, ...],
    data: str,
    follow: bool,
    lines: int,
    level: str,
    topic: str,
    group: str,
    client: str,
    output: str,
) -> int:
    """List the events of an appliance of this host by time: only those with each WORD, and without
    each !WORD.

    Each process keeps about its last 700 events in shared memory, across a crash as well; stderr or
    the journal has all of them. The command sends no request; it needs the appliance's user or
    root.

    \b
    penstock event list -f
    penstock event list --level warning
    penstock event list --topic 'orders*' -o json
    penstock event list --client 10.0.0.7 '!no-progress'
    """
    if follow and output not in (*_LINES, "jsonl"):
        raise usage("-f prints lines or -o jsonl only")
    typed = wanted(shlex.join(words), level_of(level))
    keeps = replace(
        typed,
        topic=topic or typed.topic,
        group=group or typed.group,
        client=client or typed.client,
    ).keeps
    feed = Feed(data)
    found = [one for one in feed.read_new() if keeps(one)]
    _print(found[-lines:], output)
    if not found and output in _LINES:
        print_note("no matching events")
    missed = 0
    while follow:
        sys.stdout.flush()
        time.sleep(_EVERY_S)
        was_over = feed.events_seen.is_over
        _print([one for one in feed.read_new() if keeps(one)], output)
        if feed.events_seen.missed > missed:
            print_note(
                f"{feed.events_seen.missed - missed} events were overwritten before they could be"
                " read"
            )
            missed = feed.events_seen.missed
        if feed.events_seen.is_over and not was_over:
            print_note(
                "the appliance has ended; this command follows its successor when one starts"
            )
    return OK


def _print(events: Sequence[Event], output: str) -> None:
    if output in _LINES:
        for one in events:
            at = moment_in_zone(one.at_ms)
            print(f"{at} {one.level:7} {one.process} {plain(one.event)} {plain(one.told)}".rstrip())
    elif events or output != "jsonl":
        emit([_row(one) for one in events], output, name="event")


def _row(one: Event) -> Row:
    return {
        "at_ms": one.at_ms,
        "level": one.level,
        "process": one.process,
        "event": one.event,
        "fields": dict(one.fields),
    }
