"""`penstock quota set` and `unset`: a change can be undone, so nobody is asked, as with `config
set`; before and after are shown."""

from typing import Final

import click

from appliance.quotas.limits import Entity, entity_text
from console.flags.confirm import dry_run_option, undoable
from console.flags.connection import connected, key_values
from console.flags.entity import entity_flags, needed
from console.flags.output import formatted
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.model.quotas.quota_values import kind_of, read, shown
from console.model.quotas.quotas import all_quotas, change, own_quotas
from console.show.output import Row, emit, print_note
from console.show.what_if import what_if

_NONE: Final = "none"


@click.command("set")
@click.argument("pairs", nargs=-1, required=True, metavar="QUOTA=VALUE...")
@entity_flags
@undoable
@dry_run_option
@formatted
@connected
def set_(link: Link, pairs: tuple[str, ...], entity: Entity, dry_run: bool, output: str) -> int:
    """Set quotas; they apply from the next request.

    QUOTA is Kafka's name or a short one: produce (producer_byte_rate), fetch (consumer_byte_rate),
    request (request_percentage), mutations (controller_mutation_rate), connections
    (connection_creation_rate). VALUE: 10MB/s, 1.5MiB/s, 250000; 50% of one CPU; 5/s; none removes
    it. On the appliance's host, --dry-run also shows which clients it would have throttled in the
    last ten minutes, and for about how long.

    \b
    penstock quota set --client-id loader produce=10MB/s fetch=20MB/s
    penstock quota set --user alice --default client-id produce=1MB/s
    penstock quota set --default ip connections=20/s --dry-run
    """
    changes: dict[str, float | None] = {}
    for name, text in key_values(pairs, "the quota").items():
        kind = kind_of(name)
        changes[kind] = None if text == _NONE else read(kind, text)
    return _change(link, needed(entity), changes, dry_run=dry_run, output=output)


@click.command("unset")
@click.argument("names", nargs=-1, metavar="[QUOTA]...")
@click.option("--all", "everything", is_flag=True, help="Remove all quotas of the entity.")
@entity_flags
@undoable
@dry_run_option
@formatted
@connected
def unset(
    link: Link,
    names: tuple[str, ...],
    everything: bool,
    entity: Entity,
    dry_run: bool,
    output: str,
) -> int:
    """Remove quotas; those of a less specific entity apply then.

    \b
    penstock quota unset --client-id loader produce
    penstock quota unset --default user --all
    """
    if bool(names) == everything:
        raise usage("name the quotas, or say --all: one of the two")
    kinds = [kind_of(name) for name in names] or list(own_quotas(link, needed(entity)))
    if not kinds:
        print_note(f"{entity_text(entity)} has no quotas")
        emit([], output)
        return OK
    return _change(link, needed(entity), dict.fromkeys(kinds), dry_run=dry_run, output=output)


def _change(
    link: Link,
    entity: Entity,
    changes: dict[str, float | None],
    *,
    dry_run: bool,
    output: str,
) -> int:
    def value(kind: str, number: float | None) -> float | str | None:
        return shown(kind, number) if output in ("table", "wide") else number

    done = "would be changed" if dry_run else "changed"
    before = all_quotas(link) if dry_run else {}
    plan = change(link, entity, changes, dry_run=dry_run)
    rows: list[Row] = [
        {
            "entity": entity_text(entity),
            "quota": one.kind,
            "before": value(one.kind, one.before),
            "after": value(one.kind, one.after),
            "status": "as it was" if one.before == one.after else done,
        }
        for one in plan
    ]
    emit(rows, output, name="quota")
    real = {one.kind: one.after for one in plan if one.before != one.after}
    if dry_run and real:
        for sentence in what_if(link, before, entity, real):
            print_note(sentence)
    return OK
