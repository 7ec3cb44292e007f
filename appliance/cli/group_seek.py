"""`penstock group seek`: disruptive, so the plan (before, after, delta) is shown before it is done.

A group that is read by somebody is refused: its members would go on from where they are and
overwrite what was set.
"""

import click

from appliance.cli.complete import group_names, topic_names
from appliance.cli.confirm import at_terminal, confirm, dry_run_option, yes_option
from appliance.cli.exits import OK, Failure, usage
from appliance.cli.group_targets import Target, chosen, read_file, read_to, targets
from appliance.cli.groups import Place, committed, described, edges, existing, refuse_live
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted, say, table


@click.command("seek")
@click.argument("name", metavar="GROUP", shell_complete=group_names)
@click.option(
    "--to", metavar="WHERE",
    help="start, end, 47, +5, -5 (from what is committed), start+5, end-5, @2013-01-31, 2h (ago).",
)  # fmt: skip
@click.option("--to-group", metavar="GROUP", help="Where this group is.")
@click.option(
    "--to-file", metavar="FILE", help="TOPIC PARTITION OFFSET lines, CSV or JSON; -: stdin."
)
@click.option(
    "-t", "--topic", "--topics", "topics", multiple=True, metavar="TOPIC[:P,…]",
    shell_complete=topic_names,
    help="Only these; topics that the group has not committed yet too.",
)  # fmt: skip
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    name: str,
    to: str | None,
    to_group: str | None,
    to_file: str | None,
    topics: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Move the committed offsets of a group. The plan is shown first.

    A group that has members is refused. An offset out of what is there becomes the nearest one that
    is. Without -t these are all topics that the group has committed (or those of the other group,
    or of the file).

    \b
    penstock group seek billing --to start --dry-run
    penstock group seek billing --to 2h -t orders
    penstock group seek billing --to=-100 -t orders:0,2 --yes
    penstock group describe billing -o csv > saved.csv
    penstock group seek billing --to-file saved.csv --yes
    """
    if sum(one is not None for one in (to, to_group, to_file)) != 1:
        raise usage("say --to WHERE, --to-group GROUP or --to-file FILE: one of the three")
    target = read_to(to) if to is not None else None
    if not dry_run:
        _refuse_live(link, name, may_be_new=bool(topics or to_group or to_file))
    before = committed(link, [name])[name]
    wanted = _wanted(link, target, to_group, to_file, topics, before)
    plan = _plan(before, wanted)
    if not plan:
        say(f"{name} has no committed offsets there; -t TOPIC names a topic to begin with")
        emit([], output)
        return OK
    return _apply(link, name, plan, yes=yes, dry_run=dry_run, output=output)


def _refuse_live(link: Link, name: str, *, may_be_new: bool) -> None:
    try:
        (group,) = described(link, [name])
    except Failure as failure:
        if failure.name != "GROUP_ID_NOT_FOUND" or not may_be_new:
            raise
    else:
        refuse_live(group, "its offsets cannot be moved")


def _wanted(
    link: Link,
    target: Target | None,
    to_group: str | None,
    to_file: str | None,
    topics: tuple[str, ...],
    before: dict[Place, int],
) -> dict[Place, int]:
    """Place → where the group shall be, within what is there."""
    if target is not None:
        places = chosen(topics, list(before), lambda names: existing(link, names))
        return targets(link, target, places, before)
    if to_group is not None:
        described(link, [to_group])
        given = committed(link, [to_group])[to_group]
    else:
        given = read_file(str(to_file))
    places = chosen(topics, list(given), lambda names: existing(link, names))
    known = edges(link, places)
    for place in places:
        if place not in known:
            raise _no_place(place)
    return {
        place: min(max(given[place], known[place].low), known[place].high)
        for place in places
        if place in given
    }


def _no_place(place: Place) -> Failure:
    return Failure(
        f"{place[0]} has no partition {place[1]}",
        "penstock topic list -o wide shows the topics that there are",
        name="UNKNOWN_TOPIC_OR_PARTITION",
        kafka_code=3,
    )


def _plan(before: dict[Place, int], wanted: dict[Place, int]) -> list[Row]:
    return [
        {
            "topic": place[0],
            "partition": place[1],
            "before": before.get(place),
            "after": at,
            "delta": at - before[place] if place in before else None,
        }
        for place, at in sorted(wanted.items())
    ]


def _apply(link: Link, name: str, plan: list[Row], *, yes: bool, dry_run: bool, output: str) -> int:
    if dry_run:
        emit([row | {"status": "would be moved"} for row in plan], output, name="topic")
        return OK
    if not yes:
        if at_terminal():
            table(list(plan[0]), plan, err=True)
        elif output not in ("json", "jsonl"):  # there the one document is the failure
            emit([row | {"status": "not moved"} for row in plan], output, name="topic")
        confirm(f"This moves {len(plan)} committed offset(s) of {name}", yes=yes)
    _commit(link, name, plan)
    emit([row | {"status": "moved"} for row in plan], output, name="topic")
    return OK


def _commit(link: Link, name: str, plan: list[Row]) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    from appliance.cli.link import failure_of

    wanted = [TopicPartition(row["topic"], row["partition"], row["after"]) for row in plan]
    request = [ConsumerGroupTopicPartitions(name, wanted)]
    answers = link.admin().alter_consumer_group_offsets(request, request_timeout=link.timeout_s)
    try:
        done = link.wait(answers[name], name)
    except Failure as failure:
        if failure.name in ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP"):  # somebody came meanwhile
            _refuse_live(link, name, may_be_new=True)
        raise
    for one in done.topic_partitions:
        if one.error is not None:
            raise failure_of(one.error)
