"""`penstock topic list`."""

import re

import click

from appliance.cli.complete import topic_names
from appliance.cli.exits import OK, usage
from appliance.cli.link import Link, connected
from appliance.cli.offsets import Lost, bounds
from appliance.cli.output import Row, emit, formatted, say
from appliance.cli.topic_undelete import show_deleted


@click.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=topic_names)
@click.option("-r", "--regex", metavar="PATTERN", help="Only names that this expression finds.")
@click.option("-i", "--internal", is_flag=True, help="The internal ones (__name) too.")
@click.option("--deleted", is_flag=True, help="Those that can be brought back, and until when.")
@formatted
@connected
def command(
    link: Link,
    names: tuple[str, ...],
    regex: str | None,
    internal: bool,
    deleted: bool,
    output: str,
) -> int:
    """List topics. The form "wide" counts their records too.

    \b
    penstock topic list
    penstock topic list -r '^orders' -o wide
    penstock topic list --deleted
    """
    if deleted:
        if regex or internal:
            raise usage("--deleted goes with names alone")
        show_deleted(link, names, output)
        return OK
    chosen = choose(all_names(link), names, regex, internal)
    rows: list[Row] = [
        {"name": name, "partitions": len(partitions), "replicas": replicas}
        for name, (partitions, replicas) in chosen.items()
    ]
    if output == "wide":
        _count(link, rows, chosen)
    emit(rows, output, empty=_none(names, regex))
    return OK


def _none(names: tuple[str, ...], regex: str | None) -> str:
    return "no topic is called so" if names or regex else "there is no topic yet"


Found = dict[str, tuple[list[int], int]]
"""Topic → (its partitions, replicas of each)."""


def all_names(link: Link) -> Found:
    """Every topic of the broker, by name."""
    metadata = link.admin().list_topics(timeout=link.timeout_s)
    return {
        name: (
            sorted(topic.partitions),
            max((len(one.replicas) for one in topic.partitions.values()), default=0),
        )
        for name, topic in sorted(metadata.topics.items())
    }


def choose(found: Found, names: tuple[str, ...], regex: str | None, internal: bool) -> Found:
    """Those that are named or found by the expression; raises Failure for a wrong expression."""
    try:
        pattern = re.compile(regex or "")
    except re.error as wrong:
        raise usage(f"--regex {regex!r}: {wrong}") from None
    return {
        name: found[name]
        for name in found
        if (not names or name in names)
        and pattern.search(name)
        and (internal or name in names or not name.startswith("__"))
    }


def _count(link: Link, rows: list[Row], chosen: Found) -> None:
    from confluent_kafka import TopicPartition

    places = [TopicPartition(name, p) for name, (numbers, _) in chosen.items() for p in numbers]
    lost: Lost = {}
    known = bounds(link, places, lost)
    for name, number in lost:
        say(f"{name} partition {number} is not counted; penstock topic describe {name} says why")
    for row in rows:
        mine = [edge for (name, _), edge in known.items() if name == row["name"]]
        row["records"] = sum(edge.high - edge.low for edge in mine)
