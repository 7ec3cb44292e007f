"""`penstock topic create`."""

from typing import TYPE_CHECKING, Any, Final

import click

from appliance.cli.complete import topic_settings
from appliance.cli.confirm import dry_run_option
from appliance.cli.exits import FAILED, OK, Failure
from appliance.cli.link import Link, connected, key_values
from appliance.cli.output import Row, emit, formatted
from appliance.cli.setting_values import in_units

if TYPE_CHECKING:
    from concurrent.futures import Future

PARTITIONS_MOST: Final = 100_000
PARTITIONS: Final = click.IntRange(1, PARTITIONS_MOST)
"""How many partitions a topic may be asked to have: librdkafka's limit."""


@click.command("create")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-p", "--partitions", type=PARTITIONS, metavar="N", help="How many.")
@click.option(
    "-r", "--replicas", "--replication-factor", "replicas", type=click.IntRange(1), metavar="N",
    help="Copies of each partition; 1 on an appliance alone.",
)  # fmt: skip
@click.option(
    "-c", "--config", "--topic-config", "configs", metavar="KEY=VALUE", multiple=True,
    help="A setting of the topic.", shell_complete=topic_settings,
)  # fmt: skip
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no failure.")
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Create topics. What is not said is decided by the broker's settings.

    \b
    penstock topic create orders payments -p 3
    penstock topic create latest -c cleanup.policy=compact --if-not-exists
    """
    from confluent_kafka.admin import NewTopic

    settings = in_units(key_values(configs, "-c"))
    topics = [
        NewTopic(
            name,
            num_partitions=partitions or -1,
            replication_factor=replicas or -1,
            config=dict(settings),
        )
        for name in dict.fromkeys(names)
    ]
    answers = link.admin().create_topics(
        topics, request_timeout=link.timeout_s, validate_only=dry_run
    )
    done = "would be created" if dry_run else "created"
    rows = [_row(link, name, answer, if_not_exists, done) for name, answer in answers.items()]
    if dry_run and any(row["status"] == done for row in rows):
        planned = partitions or _default_partitions(link)
        for row in rows:
            row["partitions"] = planned if row["status"] == done else None
    _count(link, rows, done if dry_run else "")
    return finish(rows, output)


def finish(rows: list[Row], output: str) -> int:
    """One failure alone is told as such; among several it is a row. The exit code."""
    failed = [row for row in rows if row["error"]]
    if len(rows) == 1 and failed:
        raise failed[0].pop("_failure")
    for row in rows:
        row.pop("_failure", None)
    narrow = [column for column in rows[0] if column != "error" or failed]
    emit(rows, output, narrow=narrow)
    return max((_code(row) for row in failed), default=OK)


def _code(row: Row) -> int:
    return FAILED if row["error"] else OK


def outcome(name: str, done: str, failure: Failure | None, **more: Any) -> Row:
    """A row of what became of one topic."""
    return {
        "name": name,
        "status": "failed" if failure else done,
        **more,
        "error": f"{failure.name}: {failure.message}" if failure else None,
        "_failure": failure,
    }


def _row(link: Link, name: str, answer: "Future[None]", if_not_exists: bool, done: str) -> Row:
    try:
        link.wait(answer)
    except Failure as failure:
        if if_not_exists and failure.name == "TOPIC_ALREADY_EXISTS":
            return outcome(name, "exists", None, partitions=None)
        return outcome(name, done, failure, partitions=None)
    return outcome(name, done, None, partitions=None)


def _default_partitions(link: Link) -> int:
    """What a topic gets when nothing is said."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    broker = min(link.admin().list_topics(timeout=link.timeout_s).brokers)
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    answers = link.admin().describe_configs([resource], request_timeout=link.timeout_s)
    return int(link.wait(answers[resource])["num.partitions"].value)


def _count(link: Link, rows: list[Row], planned: str) -> None:
    """Say how many partitions the topics have now, except those whose status is `planned`."""
    from confluent_kafka import TopicCollection

    names = [row["name"] for row in rows if not row["error"] and row["status"] != planned]
    if not names:
        return
    answers = link.admin().describe_topics(TopicCollection(names), request_timeout=link.timeout_s)
    for row in rows:
        if row["name"] in answers:
            row["partitions"] = len(link.wait(answers[row["name"]]).partitions)
