"""`penstock group seek`: disruptive, so the plan (before, after, delta) is shown first."""

from collections.abc import Callable

import click

from console.flags.complete import group_names, topic_names
from console.flags.confirm import at_terminal, confirm, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.change import STALE
from console.model.asking.failure import OK, Failure, usage
from console.model.asking.link import Link
from console.model.groups.seek import (
    Move,
    commit_moves,
    plan,
    read_file,
    read_to,
    refuse_readers,
)
from console.show.output import Row, emit, print_note, rows_of, table


@click.command("seek")
@click.argument("name", metavar="GROUP", shell_complete=group_names)
@click.option(
    "--to", metavar="WHERE",
    help="start, end, 47, +5, -5 (relative to the committed offset), start+5, end-5, "
         "@2013-01-31, 2h (ago).",
)  # fmt: skip
@click.option("--to-group", metavar="GROUP", help="Use the committed offsets of this group.")
@click.option(
    "--to-file", metavar="FILE", help="Read TOPIC PARTITION OFFSET lines, CSV or JSON; -: stdin."
)
@click.option(
    "-t", "--topic", "--topics", "topics", multiple=True, metavar="TOPIC[:P,…]",
    shell_complete=topic_names,
    help="Only these topics or partitions, with or without a committed offset.",
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
    """Reset the committed offsets of a group. The plan is shown first.

    A group with members is refused. An offset out of range becomes the nearest valid one. Without
    -t all topics with committed offsets are reset (or those of the other group, or of the file).

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
        refuse_readers(link, name, may_be_new=bool(topics or to_group or to_file))
    given = read_file(to_file) if to_file is not None else None

    def planned() -> list[Move]:
        return plan(link, name, topics, to=target, to_group=to_group, given=given)

    moves = planned()
    if not moves:
        print_note(f"{name} has no committed offsets there; -t TOPIC names a topic to begin with")
        emit([], output)
    elif dry_run:
        _show(rows_of(moves), "would be moved", output)
    else:
        moves = _moved(link, name, moves, planned, yes=yes, output=output)
        _show(rows_of(moves), "moved", output)
    return OK


def _moved(
    link: Link,
    name: str,
    moves: list[Move],
    planned: Callable[[], list[Move]],
    *,
    yes: bool,
    output: str,
) -> list[Move]:
    """Moves the offsets; returns the moves. A plan that no longer holds when it is confirmed is
    shown and confirmed again.
    """
    while True:
        if not yes:
            _ask(name, rows_of(moves), output)
        try:
            commit_moves(link, name, moves)
        except Failure as failure:
            if failure.name != STALE:
                raise
            print_note(failure.message)
            moves = planned()
        else:
            return moves


def _ask(name: str, rows: list[Row], output: str) -> None:
    if at_terminal():
        table(list(rows[0]), rows, err=True)
    elif output not in ("json", "jsonl"):  # there the one document is the failure
        _show(rows, "not moved", output)
    confirm(f"This resets {len(rows)} committed offset(s) of {name}", yes=False)


def _show(rows: list[Row], status: str, output: str) -> None:
    emit([row | {"status": status} for row in rows], output, name="topic")
