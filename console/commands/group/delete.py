"""`penstock group delete` and `delete-offsets`: irrecoverable, so the name is typed (or the number
of groups)."""

import click

from console.flags.complete import group_names, topic_names
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import FAILED, OK
from console.model.asking.link import Link
from console.model.groups import groups
from console.model.groups.seek import chosen
from console.show.outcomes import show_outcomes
from console.show.output import Row, emit, print_note


@click.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@yes_option
@dry_run_option
@formatted
@connected
def command(link: Link, names: tuple[str, ...], yes: bool, dry_run: bool, output: str) -> int:
    """Delete groups without members, and their committed offsets.

    \b
    penstock group delete billing
    penstock group delete old.1 old.2 --yes
    """
    wanted = list(dict.fromkeys(names))
    found = groups.described(link, wanted)
    offsets = groups.committed(link, wanted)
    if dry_run:
        plan: list[Row] = [
            {
                "group": group.name,
                "state": group.state,
                "members": len(group.members),
                "offsets": len(offsets[group.name]),
                "status": "has members" if group.members else "would be deleted",
            }
            for group in found
        ]
        emit(plan, output, name="group")
        return OK
    for group in found:
        groups.refuse_live(group, "it cannot be deleted")
    count = sum(map(len, offsets.values()))
    what = f"{', '.join(wanted[:10])}: {count} committed offset(s)"
    confirm_names(f"This deletes {what}", wanted, yes=yes, things="groups")
    return show_outcomes(groups.delete(link, wanted), "deleted", output)


@click.command("delete-offsets")
@click.argument("name", metavar="GROUP", shell_complete=group_names)
@click.option(
    "-t", "--topic", "--topics", "topics", multiple=True, required=True, metavar="TOPIC[:P,…]",
    shell_complete=topic_names,
    help="The topics or partitions.",
)  # fmt: skip
@yes_option
@dry_run_option
@formatted
@connected
def offsets(
    link: Link, name: str, topics: tuple[str, ...], yes: bool, dry_run: bool, output: str
) -> int:
    """Delete the committed offsets of a group for topics.

    A topic that a member of the group subscribes to is refused.

    \b
    penstock group delete-offsets billing -t orders
    penstock group delete-offsets billing -t orders:0,1 --yes
    """
    (group,) = groups.described(link, [name])
    before = groups.committed(link, [name])[name]
    by_topic: dict[str, list[int]] = {}
    for topic, number in before:
        by_topic.setdefault(topic, []).append(number)
    named = chosen(topics, [], lambda wanted: {t: by_topic.get(t, []) for t in wanted})
    places = [place for place in named if place in before]
    plan: list[Row] = [
        {"topic": topic, "partition": number, "committed": before[topic, number]}
        for topic, number in places
    ]
    if not plan or dry_run:
        if not plan:
            print_note(f"{name} has no committed offsets there; nothing was deleted")
        emit([row | {"status": "would be deleted"} for row in plan], output, name="topic")
        return OK
    confirm_names(f"This deletes {len(plan)} committed offset(s) of {name}", [name], yes=yes)
    refused = groups.delete_offsets(link, name, places, group.server)
    for row in plan:
        code = refused.get((row["topic"], row["partition"]), "")
        row |= {"status": "failed" if code else "deleted", "error": code or None}
    emit(plan, output, name="topic", narrow=[c for c in plan[0] if c != "error" or refused])
    return FAILED if refused else OK
