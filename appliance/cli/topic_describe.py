"""`penstock topic describe`."""

from typing import Any

import click

from appliance.cli.complete import topic_names
from appliance.cli.exits import OK, Failure
from appliance.cli.link import Link, connected
from appliance.cli.offsets import Bounds, Lost, bounds
from appliance.cli.output import Row, emit, formatted, plain, table


@click.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=topic_names)
@click.option("-s", "--summary", is_flag=True, help="Only the summary.")
@click.option("-p", "--partitions", is_flag=True, help="Only the partitions.")
@click.option("-c", "--configs", is_flag=True, help="Only the settings.")
@click.option("-a", "--all", "everything", is_flag=True, help="Summary, partitions and settings.")
@formatted
@connected
def command(
    link: Link,
    names: tuple[str, ...],
    summary: bool,
    partitions: bool,
    configs: bool,
    everything: bool,
    output: str,
) -> int:
    """Show topics: summary and partitions unless told otherwise.

    \b
    penstock topic describe orders
    penstock topic describe orders -c
    penstock topic describe orders payments -a -o json
    """
    asked = summary or partitions or configs
    show_configs = configs or everything
    show_partitions = partitions or everything or not asked
    show_summary = summary or everything or not asked
    topics = describe(link, list(dict.fromkeys(names)))
    for topic in topics:
        if show_configs:
            topic["configs"] = settings_of(link, topic["name"])
        if not show_partitions:
            del topic["partitions"]
    if output in ("table", "wide"):
        for topic in topics:
            _print(topic, show_summary, output)
    elif output == "csv":
        part = "partitions" if show_partitions else "configs" if show_configs else ""
        rows = [{"name": t["name"]} | row for t in topics for row in t[part]] if part else topics
        emit(rows, output)
    else:
        emit(topics, output)
    return OK


def describe(link: Link, names: list[str]) -> list[Row]:
    """Everything but settings. Raises Failure for a topic that is not there."""
    from confluent_kafka import TopicCollection, TopicPartition

    answers = link.admin().describe_topics(TopicCollection(names), request_timeout=link.timeout_s)
    found = {name: link.wait(answers[name], name) for name in names}
    places = [TopicPartition(name, one.id) for name in names for one in found[name].partitions]
    lost: Lost = {}
    known = bounds(link, places, lost)
    return [_topic(found[name], known, lost) for name in names]


def _topic(found: Any, known: dict[tuple[str, int], Bounds], lost: Lost) -> Row:
    partitions: list[Row] = []
    for one in sorted(found.partitions, key=lambda p: int(p.id)):
        edge = known.get((found.name, one.id))
        partitions.append(
            {
                "partition": one.id,
                "leader": one.leader.id if one.leader else None,
                "replicas": [node.id for node in one.replicas],
                "isr": [node.id for node in one.isr],
                "start": edge and edge.low,
                "end": edge and edge.high,
                "records": edge and edge.high - edge.low,
                "problem": _problem(lost.get((found.name, one.id))),
            }
        )
    return {
        "name": found.name,
        "id": str(found.topic_id),
        "internal": bool(found.is_internal),
        "partition_count": len(partitions),
        "replicas": max((len(p["replicas"]) for p in partitions), default=0),
        "records": sum(p["records"] or 0 for p in partitions),
        "partitions": partitions,
    }


def _problem(failure: Failure | None) -> str | None:
    if failure is None:
        return None
    if failure.name == "KAFKA_STORAGE_ERROR":
        return "offline: storage error; the appliance's log names the file (partition-offline)"
    return f"{failure.name}: {failure.message}"


def settings_of(link: Link, name: str) -> list[Row]:
    """Every setting of a topic with the place that its value comes from."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, name)
    answers = link.admin().describe_configs([resource], request_timeout=link.timeout_s)
    found = link.wait(answers[resource], name)
    return [
        {
            "key": key,
            "value": None if entry.is_sensitive else entry.value,
            "source": _source(entry.source),
            "read_only": entry.is_read_only,
            "sensitive": entry.is_sensitive,
        }
        for key, entry in sorted(found.items())
    ]


_SOURCES = {
    1: "topic",
    2: "broker, set at run time",
    3: "cluster, set at run time",
    4: "broker, its file or command line",
    5: "default",
}


def _source(source: Any) -> str:
    number = int(getattr(source, "value", source))
    return _SOURCES.get(number, "unknown")


def _print(topic: Row, show_summary: bool, output: str) -> None:
    if show_summary:
        for key, value in topic.items():
            if key not in ("partitions", "configs"):
                print(f"{key.replace('_', ' '):<16}{plain(value)}")
        print()
    if topic.get("partitions"):
        sick = any(one["problem"] for one in topic["partitions"])
        columns = [name for name in topic["partitions"][0] if sick or name != "problem"]
        table(columns, topic["partitions"])
        print()
    if topic.get("configs"):
        columns = ["key", "value", "source"]
        table(columns if output == "table" else list(topic["configs"][0]), topic["configs"])
        print()
