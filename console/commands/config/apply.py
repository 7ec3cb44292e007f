"""`penstock config apply FILE` and `config export`: an appliance as a file says, and the file."""

import sys
import time
from pathlib import Path
from typing import Final

import click

from console.flags.confirm import confirm, confirm_names, dry_run_option, yes_option
from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.change import Change, carry_out
from console.model.asking.failure import NEGATIVE, OK, unreadable
from console.model.asking.link import Link, asking
from console.model.cluster import applying
from console.model.cluster.applying import CREATE, NOTHING, REMOVE, Step
from console.model.cluster.desired import parse
from console.show.output import Row, as_json, as_toml, as_yaml, emit, print_note, rows_of

_TRIES: Final = 30
_REST_S: Final = 1.0


@click.command("apply")
@click.argument("file", metavar="FILE")
@click.option("--check", is_flag=True, help="Change nothing; exit code 4 when something differs.")
@click.option(
    "--prune", is_flag=True,
    help="Delete topics, settings and quotas that the file does not name, in the sections "
         "that it has.",
)  # fmt: skip
@yes_option
@dry_run_option
@formatted
@connected
def apply(
    link: Link, file: str, check: bool, prune: bool, yes: bool, dry_run: bool, output: str
) -> int:
    """Apply topics, settings and quotas from a file: TOML, JSON or YAML, `-` for stdin.

    The plan is shown first. Anything that the file does not name stays, unless --prune is given;
    deleting a topic is confirmed by typing its name. Applying the same file again changes nothing.
    Partitions are added, never removed; replicas are not moved.

    \b
    [topics.orders]
    partitions = 3
    config.retention.ms = "7d"
    [cluster]
    log.retention.ms = "3d"
    [[quotas]]
    client-id = "loader"
    produce = "10MB/s"

    \b
    penstock config apply desired.toml --dry-run
    penstock config apply desired.toml --yes
    penstock config apply desired.toml --check
    penstock config export > desired.toml
    """
    desired = parse(_text_of(file), file)
    reading = Link(link.bootstrap, link.properties, link.timeout_s, read_only=True)
    with asking(reading):
        steps = applying.plan(reading, desired, prune=prune)
    todo = [step for step in steps if step.change is not None]
    emit(_rows(steps, "would be" if dry_run or check else "planned"), output, name="name")
    for step in todo:
        for sentence in step.change.says if step.change is not None else ():
            print_note(f"{step.rows[0].name}: {sentence}")
    if not todo:
        print_note("nothing to change: the state matches the file")
        return OK
    if check or dry_run:
        return NEGATIVE if check else OK
    _ask(todo, yes)
    for step in todo:
        assert step.change is not None, "only topics with a change are applied"
        first = step.rows[0]
        print_note(f"{first.kind} {first.name}: {_done(step.change, reading, link)}")
    return OK


def _rows(steps: list[Step], status: str) -> list[Row]:
    rows = rows_of([row for step in steps for row in step.rows])
    return [row | {"status": "as it is" if row["action"] == NOTHING else status} for row in rows]


def _ask(todo: list[Step], yes: bool) -> None:
    """Raises Failure when nobody says yes."""
    rows = [row for step in todo for row in step.rows]
    made = len([row for row in rows if row.action == CREATE])
    taken = len([row for row in rows if row.action == REMOVE])
    what = f"{len(rows)} values: {made} new, {len(rows) - made - taken} changed, {taken} removed"
    if gone := [step.rows[0].name for step in todo if step.removes]:
        confirm_names(f"{what}, and these topics deleted: {', '.join(gone)}", gone, yes=yes)
    else:
        confirm(what, yes=yes)


def _done(change: Change, reading: Link, writing: Link) -> str:
    """Once, whatever becomes of the answers: what happened. Raises Failure."""
    left = _TRIES

    def rest() -> bool:
        nonlocal left
        left -= 1
        time.sleep(_REST_S)
        return left <= 0

    return carry_out(change, reading, writing, tell=print_note, rest=rest)


def _text_of(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise unreadable(file, problem) from None


@click.command("export")
@click.option(
    "-o", "--output", "--format", "output", type=click.Choice(("toml", "yaml", "json")),
    default="toml", help="Format.  [default: toml]", metavar="FORM",
)  # fmt: skip
@connected
def export(link: Link, output: str) -> int:
    """Print topics, settings and quotas as a file for config apply: TOML, YAML or JSON.

    Internal topics, secrets and replica assignments are left out. Reading YAML back needs PyYAML.

    \b
    penstock config export > desired.toml
    penstock config export -o yaml
    """

    found = applying.exported(link)
    if output == "json":
        print(as_json(found, indent=2))
    else:
        print(as_toml(found) if output == "toml" else as_yaml(found))
    return OK
