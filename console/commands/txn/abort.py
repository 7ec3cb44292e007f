"""`penstock txn abort`: irrecoverable, so the name is typed."""

import click

from console.flags.complete import topic_names, transactional_ids
from console.flags.confirm import confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.change import Proposal
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.groups.groups import existing
from console.model.groups.seek import chosen
from console.model.transactions import transaction_changes
from console.show.output import Row, emit, print_note


@click.command("abort")
@click.argument("name", required=False, metavar="[ID]", shell_complete=transactional_ids)
@click.option(
    "-t", "--topic", metavar="TOPIC:P", shell_complete=topic_names,
    help="The partition of a hanging transaction.",
)  # fmt: skip
@click.option(
    "--start", "--start-offset", "start", type=click.IntRange(0), metavar="OFFSET",
    help="Its first offset there, as penstock txn hanging shows it.",
)  # fmt: skip
@yes_option
@dry_run_option
@formatted
@connected
def command(
    link: Link,
    name: str | None,
    topic: str | None,
    start: int | None,
    yes: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Abort the open transaction of ID, a transactional id: read_committed consumers never see its
    records, and its producer is fenced. penstock txn list --open lists ids.

    Give either ID or both -t and --start. A hanging transaction has no coordinator; it is named by
    its partition and first offset, as penstock txn hanging shows them, and an abort marker is
    written there. A transaction that a coordinator knows is aborted by its id only, so that all of
    its partitions agree.

    The plan is shown and confirmed by typing ID or TOPIC:P, unless --yes is given. A transaction
    that has ended meanwhile is left alone, even when its producer has begun the next.

    \b
    penstock txn abort copier --dry-run
    penstock txn abort -t orders:0 --start 4711 --yes
    """
    proposal = _proposal(link, name, topic, start)
    change = proposal.plan(link)
    row: Row = {"name": proposal.names[0]} | {
        fact.what.replace(" ", "_"): fact.value for fact in change.facts
    }
    if dry_run:
        emit([row | {"status": "would be aborted"}], output)
        return OK
    print_note(" ".join(change.says))
    told = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in row.items())
    confirm_names(f"This aborts {told}", list(proposal.names), yes=yes)
    emit([row | {"status": change.apply(link)}], output)
    return OK


def _proposal(link: Link, name: str | None, topic: str | None, start: int | None) -> Proposal:
    if name is not None and topic is None and start is None:
        return transaction_changes.abort(name)
    if name is not None or topic is None or start is None:
        raise usage("say an ID, or -t TOPIC:P with --start OFFSET")
    places = chosen((topic,), [], lambda wanted: existing(link, wanted))
    if len(places) != 1:
        raise usage(f"-t {topic!r} is not one partition", "for example -t orders:0")
    return transaction_changes.abort_hanging(*places[0], start)
