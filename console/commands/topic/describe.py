"""`penstock topic describe`."""

import click

from console.flags.complete import topic_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking import configs
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.cluster import nodes
from console.model.topics import partitions as partitions_of
from console.model.topics import replicas, topics
from console.model.topics.replicas import Place
from console.show.output import Row, emit, plain, rows_of, table
from console.show.replicas import describe_missing

_WHEN_TOLD = ("problem", "elr", "missing")
"""Columns of a table only when they say something."""
_SETTING = ("key", "value", "source", "read_only", "sensitive")


@click.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=topic_names)
@click.option("-s", "--summary", is_flag=True, help="Show only the summary.")
@click.option("-p", "--partitions", is_flag=True, help="Only the partitions.")
@click.option("-c", "--configs", "settings", is_flag=True, help="Only the settings.")
@click.option("-a", "--all", "everything", is_flag=True, help="Summary, partitions and settings.")
@formatted
@connected
@watched
def command(
    link: Link,
    names: tuple[str, ...],
    summary: bool,
    partitions: bool,
    settings: bool,
    everything: bool,
    output: str,
) -> int:
    """Show topics: by default summary and partitions.

    For a replica out of sync the reason is shown: its node is fenced, its log directory failed, or
    its lag.

    \b
    penstock topic describe orders
    penstock topic describe orders -c
    penstock topic describe orders payments -a -o json
    """
    asked = summary or partitions or settings
    show_settings = settings or everything
    show_partitions = partitions or everything or not asked
    show_summary = summary or everything or not asked
    rows = rows_of(topics.described(link, list(dict.fromkeys(names))))
    if show_partitions:
        _add_missing(link, rows)
    for row in rows:
        if show_settings:
            row["configs"] = _settings(link, row["name"])
        if not show_partitions:
            del row["partitions"]
    if output in ("table", "wide"):
        for row in rows:
            _print(row, show_summary, output)
    elif output == "csv":
        part = "partitions" if show_partitions else "configs" if show_settings else ""
        flat = [{"name": row["name"]} | one for row in rows for one in row[part]] if part else rows
        emit(flat, output)
    else:
        emit(rows, output)
    return OK


def _add_missing(link: Link, topics_told: list[Row]) -> None:
    """To each partition: who else may lead without a loss, and who is not in sync, and why; None
    over SASL."""
    found: dict[Place, partitions_of.Partition] = {}
    sick: dict[Place, replicas.Behind] = {}
    known: dict[int, nodes.Node] = {}
    if link.is_asked:
        names = [topic["name"] for topic in topics_told]
        found = {one.place: one for one in partitions_of.partitions(link, names)}
        if missing := [one for one in found.values() if one.missing]:
            known = nodes.read_nodes(link).all
            behind = replicas.behind(link, missing, known)
            sick = {(one.topic, one.partition): one for one in behind}
    for topic in topics_told:
        for row in topic["partitions"]:
            place = topic["name"], row["partition"]
            row["elr"] = list(found[place].elr) if place in found else None
            why = sick[place].missing if place in sick else ()
            row["missing"] = (
                [describe_missing(one, known.get(one.node)) for one in why] if found else None
            )


def _settings(link: Link, name: str) -> list[Row]:
    found = rows_of(configs.settings(link, configs.Target(configs.TOPIC, name)))
    return [{column: row[column] for column in _SETTING} for row in found]


def _print(topic: Row, show_summary: bool, output: str) -> None:
    if show_summary:
        for key, value in topic.items():
            if key not in ("partitions", "configs"):
                print(f"{key.replace('_', ' '):<16}{plain(value)}")
        print()
    if topic.get("partitions"):
        telling = {name for name in _WHEN_TOLD if any(one[name] for one in topic["partitions"])}
        columns = [
            name for name in topic["partitions"][0] if name in telling or name not in _WHEN_TOLD
        ]
        table(columns, topic["partitions"])
        print()
    if topic.get("configs"):
        columns = ["key", "value", "source"]
        table(columns if output == "table" else list(_SETTING), topic["configs"])
        print()
