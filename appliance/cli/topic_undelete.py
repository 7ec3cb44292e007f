"""`penstock topic undelete`: brings a deleted topic back whole, and can be undone by deleting it
again, so nobody is asked."""

import json
import time
from typing import Final

import click

from appliance.cli.confirm import dry_run_option
from appliance.cli.exits import Failure
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.topic_create import finish, outcome

UNDELETE: Final = "penstock.undelete"
_DELETED: Final = "penstock:deleted"


@click.command("undelete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--id", "topic_id", metavar="ID", help="Which one, when several had the name.")
@dry_run_option
@formatted
@connected
def command(
    link: Link, names: tuple[str, ...], topic_id: str | None, dry_run: bool, output: str
) -> int:
    """Bring deleted topics back: id, records, settings, offsets, and what groups committed.

    It works until the time of the trash is over (penstock.topic.trash.retention.ms of the broker)
    or the disk is nearly full; penstock topic list --deleted shows what can be brought back.

    \b
    penstock topic undelete orders
    penstock topic undelete orders --id 9oJ4B6sSQ1mYxJUSZq3ZJg --dry-run
    """
    from confluent_kafka.admin import NewTopic

    wanted = [
        NewTopic(name, num_partitions=-1, config={UNDELETE: topic_id or "true"})
        for name in dict.fromkeys(names)
    ]
    answers = link.admin().create_topics(
        wanted, request_timeout=link.timeout_s, validate_only=dry_run
    )
    done = "would come back" if dry_run else "back"
    rows: list[Row] = []
    for name, answer in answers.items():
        failure = None
        try:
            link.wait(answer)
        except Failure as refused:
            failure = refused
            if failure.name == "UNKNOWN_TOPIC_OR_PARTITION":
                failure.hint = "penstock topic list --deleted shows what can be brought back"
            elif failure.name == "TOPIC_ALREADY_EXISTS":
                failure.hint = f"penstock topic delete {name} makes way for it"
        rows.append(outcome(name, done, failure))
    return finish(rows, output)


def deleted_topics(link: Link) -> list[Row]:
    """What can be brought back, the newest deletion first."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, _DELETED)
    answers = link.admin().describe_configs([resource], request_timeout=link.timeout_s)
    try:
        found = link.wait(answers[resource])
    except Failure as failure:
        if failure.name in ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"):
            failure.message = "this broker keeps no deleted topics"
            failure.hint = "it is not an appliance of ours, or an older one"
        raise
    rows = []
    for topic_id, entry in found.items():
        told = json.loads(entry.value)
        rows.append(
            {
                "name": told["name"],
                "deleted": _local(told["deleted_ms"]),
                "until": _local(told["until_ms"]),
                "partitions": told["partitions"],
                "records": told["records"],
                "bytes": told["bytes"],
                "id": topic_id,
            }
        )
    return sorted(rows, key=lambda row: (row["deleted"], row["name"]), reverse=True)


def _local(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(ms / 1000))


def show_deleted(link: Link, names: tuple[str, ...], output: str) -> None:
    """Rows of the deleted topics, of these names when some are given."""
    rows = [row for row in deleted_topics(link) if not names or row["name"] in names]
    emit(rows, output, empty="no deleted topic can be brought back")
