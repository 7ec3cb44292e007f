"""`penstock group delete-offsets`: irrecoverable, so the group's name is typed."""

import click

from appliance.cli.complete import group_names, topic_names
from appliance.cli.confirm import confirm_names, dry_run_option, yes_option
from appliance.cli.exits import FAILED, OK
from appliance.cli.group_targets import chosen
from appliance.cli.groups import committed, described
from appliance.cli.link import Link, connected
from appliance.cli.offset_delete import delete_offsets
from appliance.cli.output import Row, emit, formatted, say


@click.command("delete-offsets")
@click.argument("name", metavar="GROUP", shell_complete=group_names)
@click.option(
    "-t", "--topic", "--topics", "topics", multiple=True, required=True, metavar="TOPIC[:P,…]",
    shell_complete=topic_names,
    help="Of which topics, or partitions.",
)  # fmt: skip
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link, name: str, topics: tuple[str, ...], yes: bool, dry_run: bool, output: str
) -> int:
    """Forget what a group has committed of some topics; it is as if it never read them.

    A group that still reads a topic is refused.

    \b
    penstock group delete-offsets billing -t orders
    penstock group delete-offsets billing -t orders:0,1 --yes
    """
    described(link, [name])
    before = committed(link, [name])[name]
    by_topic: dict[str, list[int]] = {}
    for topic, number in before:
        by_topic.setdefault(topic, []).append(number)
    places = [
        place
        for place in chosen(topics, [], lambda names: {t: by_topic.get(t, []) for t in names})
        if place in before
    ]
    plan: list[Row] = [
        {"topic": topic, "partition": number, "committed": before[topic, number]}
        for topic, number in places
    ]
    if not plan or dry_run:
        if not plan:
            say(f"{name} has committed nothing there; nothing was deleted")
        emit([row | {"status": "would be deleted"} for row in plan], output, name="topic")
        return OK
    confirm_names(f"This deletes {len(plan)} committed offset(s) of {name}", [name], yes=yes)
    refused = delete_offsets(link, name, places)
    for row in plan:
        code = refused.get((row["topic"], row["partition"]), "")
        row |= {"status": "failed" if code else "deleted", "error": code or None}
    emit(plan, output, name="topic", narrow=[c for c in plan[0] if c != "error" or refused])
    return FAILED if refused else OK
