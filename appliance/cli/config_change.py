"""What `config set` and `config unset` share: a change can be undone, so nobody is asked; before
and after are shown."""

from collections.abc import Mapping

from appliance.cli.config_target import BROKER, DELETE, Target, alter, in_force, settings_of
from appliance.cli.exits import OK, Failure
from appliance.cli.link import Link
from appliance.cli.output import Row, emit

Changes = Mapping[str, tuple[int, str | None]]


def change(
    link: Link, target: Target | None, changes: Changes, *, dry_run: bool, output: str
) -> int:
    """Apply or check the changes, and show them. Raises Failure."""
    told = target or Target(BROKER, "")
    before = _values(link, told)
    alter(link, told, changes, dry_run=dry_run)
    after = {} if dry_run else _values(link, told)
    rows: list[Row] = []
    for key, (kind, value) in changes.items():
        old = before.get(key)
        new = after.get(key)
        if dry_run:
            new = {"value": "(inherited)" if kind == DELETE else value, "source": None}
        row: Row = {"key": key, "before": old and old["value"], "after": new and new["value"]}
        row["source"] = new and new["source"]
        same = not dry_run and row["before"] == row["after"]
        row["status"] = "would be changed" if dry_run else "the same" if same else "changed"
        rows.append(row)
    shown = ("key", "before", "after", "status") if dry_run else ()
    emit(rows, output, narrow=shown, name="key")
    return OK


def _values(link: Link, target: Target) -> dict[str, Row]:
    """Every setting in force for the target; of the cluster, as its broker has it."""
    found: dict[str, Row] = {}
    if target == Target(BROKER, ""):
        try:
            found = _values(link, in_force(link, None))
        except Failure:  # several brokers: only what is set for all is known
            found = {}
        if found:
            return found
    return {row["key"]: row for row in settings_of(link, target)}
