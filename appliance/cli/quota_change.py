"""What `quota set` and `quota unset` share: a change can be undone, so nobody is asked, as with
`config set`; before and after are shown."""

from appliance.cli.exits import OK
from appliance.cli.link import Link
from appliance.cli.output import Row, emit
from appliance.cli.quota_client import alter, own_quotas
from appliance.cli.quota_values import shown
from appliance.quotas.limits import Entity, entity_text


def change(
    link: Link,
    entity: Entity,
    changes: dict[str, float | None],
    *,
    dry_run: bool,
    output: str,
) -> int:
    """Show what would change; do it when that is wanted. None takes a quota away."""
    before = own_quotas(link, entity)
    plan = [(kind, before.get(kind), value) for kind, value in sorted(changes.items())]
    real = {kind: value for kind, was, value in plan if was != value}
    alter(link, entity, changes, dry_run=True)
    if real and not dry_run:
        alter(link, entity, real, dry_run=False)
    rows: list[Row] = [
        {
            "entity": entity_text(entity),
            "quota": kind,
            "before": was if output not in ("table", "wide") else shown(kind, was),
            "after": value if output not in ("table", "wide") else shown(kind, value),
            "status": _status(kind in real, dry_run),
        }
        for kind, was, value in plan
    ]
    emit(rows, output, name="quota")
    return OK


def _status(changes: bool, dry_run: bool) -> str:
    if not changes:
        return "as it was"
    return "would be changed" if dry_run else "changed"
