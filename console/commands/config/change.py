"""`penstock config set` and `unset`: a change can be undone, so nobody is asked; before and
after are shown."""

import re
from typing import Final

import click

from console.flags.complete import setting_names
from console.flags.confirm import dry_run_option, undoable
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.target import targeted
from console.model.asking.configs import (
    APPEND,
    CLUSTER,
    DELETE,
    SET,
    SUBTRACT,
    Changes,
    Target,
    change,
)
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.asking.setting_values import in_unit
from console.show.output import Row, emit

_KINDS: Final = {"": SET, "+": APPEND, "-": SUBTRACT}


@click.command("set")
@click.argument(
    "pairs", nargs=-1, required=True, metavar="KEY=VALUE...", shell_complete=setting_names
)
@targeted
@undoable
@dry_run_option
@formatted
@connected
def set_(
    link: Link, pairs: tuple[str, ...], target: Target | None, dry_run: bool, output: str
) -> int:
    """Change dynamic settings; without a target, the default of all brokers.

    Only named settings change. KEY+=VALUE and KEY-=VALUE append to and subtract from a list. Times
    and sizes may have a unit: 7d, 1h30m, 10MiB. No confirmation is asked, because a change can be
    undone.

    \b
    penstock config set log.retention.ms=7d --dry-run
    penstock config set cleanup.policy+=compact -t orders
    penstock config set consumer.session.timeout.ms=60000 -g billing
    """
    changes = {}
    for pair in pairs:
        found = re.fullmatch(r"([^=+\s-][^=\s]*?)([+-]?)=(.*)", pair, re.DOTALL)
        if found is None:
            raise usage(f"{pair!r} is not KEY=VALUE")
        changes[found[1]] = (_KINDS[found[2]], in_unit(found[1], found[3]))
    return show_change(link, target or CLUSTER, changes, dry_run=dry_run, output=output)


@click.command("unset")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=setting_names)
@targeted
@undoable
@dry_run_option
@formatted
@connected
def unset(
    link: Link, keys: tuple[str, ...], target: Target | None, dry_run: bool, output: str
) -> int:
    """Remove settings; the value of the next level applies: broker, settings file or default.

    \b
    penstock config unset log.retention.ms
    penstock config unset retention.ms flush.policy -t orders
    """
    if any("=" in key for key in keys):
        raise usage("unset takes keys only, without =VALUE")
    changes = dict.fromkeys(keys, (DELETE, None))
    return show_change(link, target or CLUSTER, changes, dry_run=dry_run, output=output)


def show_change(link: Link, target: Target, changes: Changes, *, dry_run: bool, output: str) -> int:
    """Apply or check the changes, and show them: the exit code. Raises Failure."""
    rows: list[Row] = []
    for one in change(link, target, changes, dry_run=dry_run):
        kind, value = changes[one.key]
        after, status = one.after, "the same" if one.before == one.after else "changed"
        if dry_run:
            after, status = "(inherited)" if kind == DELETE else value, "would be changed"
        row: Row = {"key": one.key, "before": one.before, "after": after}
        rows.append(row | {"source": one.source, "status": status})
    shown = ("key", "before", "after", "status") if dry_run else ()
    emit(rows, output, narrow=shown, name="key")
    return OK
