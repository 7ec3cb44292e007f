"""`penstock topic delete`: irrecoverable after a while, so the name is typed (or how many)."""

from typing import Final

import click

from appliance.cli.complete import topic_names
from appliance.cli.confirm import confirm_names, dry_run_option, yes_option
from appliance.cli.exits import OK, Failure, usage
from appliance.cli.link import Link, connected
from appliance.cli.offsets import bounds
from appliance.cli.output import Row, emit, formatted, say
from appliance.cli.topic_create import finish, outcome
from appliance.cli.topic_list import all_names, choose

_UNDELETE: Final = "For a while, penstock topic undelete brings it back."


@click.command("delete")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=topic_names)
@click.option("-r", "--regex", metavar="PATTERN", help="Those whose whole name this matches.")
@click.option("--if-exists", is_flag=True, help="A topic that is not there is no failure.")
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    names: tuple[str, ...],
    regex: str | None,
    if_exists: bool,
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Delete topics with all of their records. For a while, penstock topic undelete brings them
    back.

    \b
    penstock topic delete orders
    penstock topic delete -r 'test-.*' --dry-run
    penstock topic delete orders --yes
    """
    if bool(names) == bool(regex):
        raise usage("name the topics, or a pattern with --regex: one of the two")
    there = all_names(link)
    found = choose(there, names, None if regex is None else rf"\A(?:{regex})\Z", bool(names))
    missing = [name for name in names if name not in found]
    rows: list[Row] = []
    if missing and not if_exists:
        rows = [_missing(name) for name in missing]
    if found:
        plan = _plan(link, list(found))
        records = sum(row["records"] for row in plan)
        if dry_run:
            emit(plan, output)
            return OK
        what = f"{', '.join(list(found)[:10])}{' …' if len(found) > 10 else ''}: {records} records"
        confirm_names(f"This deletes {what}", list(found), yes=yes, then=_UNDELETE)
        rows += _delete(link, list(found))
    if not rows:
        say("no topic matches; nothing was deleted")
        return OK
    return finish(rows, output)


def _missing(name: str) -> Row:
    failure = Failure(
        f"{name}: there is no such topic",
        "penstock topic list shows the topics that there are",
        name="UNKNOWN_TOPIC_OR_PARTITION",
        kafka_code=3,
    )
    return outcome(name, "deleted", failure)


def _plan(link: Link, names: list[str]) -> list[Row]:
    from confluent_kafka import TopicPartition

    there = all_names(link)
    places = [TopicPartition(name, p) for name in names for p in there[name][0]]
    known = bounds(link, places)
    return [
        {
            "name": name,
            "partitions": len(there[name][0]),
            "records": sum(e.high - e.low for (topic, _), e in known.items() if topic == name),
        }
        for name in names
    ]


def _delete(link: Link, names: list[str]) -> list[Row]:
    rows = []
    answers = link.admin().delete_topics(names, request_timeout=link.timeout_s)
    for name, answer in answers.items():
        try:
            link.wait(answer)
            rows.append(outcome(name, "deleted", None))
        except Failure as failure:
            rows.append(outcome(name, "deleted", failure))
    return rows
