"""`penstock topic delete` and `undelete`. A deleted topic can be brought back for a while only, so
the name is typed (or how many); undeleting is undone by deleting again, so nobody is asked."""

from typing import Final

import click

from console.flags.complete import topic_names
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.groups.offsets import Lost
from console.model.topics import topics
from console.show.outcomes import show_outcomes
from console.show.output import Row, emit, print_note

_UNDELETE: Final = "For a while, penstock topic undelete brings it back."


@click.command("delete")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=topic_names)
@click.option(
    "-r",
    "--regex",
    metavar="PATTERN",
    help="Delete topics whose whole name matches this regular expression.",
)
@click.option("--if-exists", is_flag=True, help="Succeed when the topic does not exist.")
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
    """Delete topics with all of their records. penstock topic undelete restores them for a while.

    \b
    penstock topic delete orders
    penstock topic delete -r 'test-.*' --dry-run
    penstock topic delete orders --yes
    """
    if bool(names) == bool(regex):
        raise usage("name the topics, or a pattern with --regex: one of the two")
    whole = None if regex is None else rf"\A(?:{regex})\Z"
    found = topics.choose(topics.listed(link), names, whole, internal=bool(names))
    outcomes: topics.Outcomes = {}
    if not if_exists:
        outcomes = {name: topics.missing(name) for name in names if name not in found}
    if found:
        lost: Lost = {}  # a topic that nobody leads can be deleted all the same
        records = topics.records(link, found.values(), lost)
        for name, number in lost:
            print_note(f"{name} partition {number} is not counted: it has no leader")
        if dry_run:
            plan: list[Row] = [
                {"name": name, "partitions": len(one.partitions), "records": records[name]}
                for name, one in found.items()
            ]
            emit(plan, output)
            return OK
        listed = f"{', '.join(list(found)[:10])}{' …' if len(found) > 10 else ''}"
        what = f"This deletes {listed}: {sum(records.values())} records"
        confirm_names(what, list(found), yes=yes, then=_UNDELETE)
        outcomes |= topics.delete(link, list(found))
    if not outcomes:
        print_note("no topic matches; nothing was deleted")
        return OK
    return show_outcomes(outcomes, "deleted", output)


@click.command("undelete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--id", "topic_id", metavar="ID", help="The topic id, when several deleted topics had the name."
)
@dry_run_option
@formatted
@connected
def undelete(
    link: Link, names: tuple[str, ...], topic_id: str | None, dry_run: bool, output: str
) -> int:
    """Restore deleted topics: id, records, settings, offsets and the groups' committed offsets.

    Deleted topics are kept for penstock.topic.trash.retention.ms, or until the disk is nearly full;
    penstock topic list --deleted lists them. In a cluster each partition needs a node that was in
    sync at the deletion and still has the data.

    \b
    penstock topic undelete orders
    penstock topic undelete orders --id 9oJ4B6sSQ1mYxJUSZq3ZJg --dry-run
    """
    outcomes = topics.undelete(link, names, topic_id, dry_run=dry_run)
    return show_outcomes(outcomes, "would come back" if dry_run else "back", output)
