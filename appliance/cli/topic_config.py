"""`penstock topic config get|set|unset`: a change can be undone, so nobody is asked; before and
after are shown."""

import click

from appliance.cli.complete import topic_names, topic_settings
from appliance.cli.confirm import dry_run_option, undoable
from appliance.cli.exits import OK, Failure, usage
from appliance.cli.link import Link, connected, key_values
from appliance.cli.output import Row, emit, formatted
from appliance.cli.setting_values import in_units
from appliance.cli.topic_describe import settings_of


@click.group(
    "config",
    epilog="""\b
Examples:
  penstock topic config get orders
  penstock topic config set orders retention.ms=86400000 --dry-run
  penstock topic config unset orders retention.ms""",
)
def command() -> None:
    """Get, set and unset settings of a topic."""


@command.command("get")
@click.argument("name", shell_complete=topic_names)
@click.argument("keys", nargs=-1, metavar="[KEY]...", shell_complete=topic_settings)
@click.option("--changed", is_flag=True, help="Only what was set for this topic.")
@formatted
@connected
def get(link: Link, name: str, keys: tuple[str, ...], changed: bool, output: str) -> int:
    """Show settings, with the place that each value comes from.

    \b
    penstock topic config get orders
    penstock topic config get orders retention.ms -o json
    penstock topic config get orders --changed
    """
    rows = settings_of(link, name)
    unknown = [key for key in keys if key not in {row["key"] for row in rows}]
    if unknown:
        raise Failure(
            f"{unknown[0]} is not a setting of topics",
            f"penstock topic config get {name} shows all of them",
            name="INVALID_CONFIG",
            kafka_code=40,
        )
    rows = [row for row in rows if not keys or row["key"] in keys]
    if changed:
        rows = [row for row in rows if row["source"] == "topic"]
    emit(
        rows,
        output,
        narrow=("key", "value", "source"),
        name="key",
        empty="nothing is set for this topic",
    )
    return OK


@command.command("set")
@click.argument("name", shell_complete=topic_names)
@click.argument(
    "pairs", nargs=-1, required=True, metavar="KEY=VALUE...", shell_complete=topic_settings
)
@undoable
@dry_run_option
@formatted
@connected
def set_(link: Link, name: str, pairs: tuple[str, ...], dry_run: bool, output: str) -> int:
    """Give settings of a topic values of their own.

    \b
    penstock topic config set orders retention.ms=7d segment.bytes=100MiB
    penstock topic config set orders flush.policy=os --dry-run
    """
    changes: dict[str, str | None] = {**in_units(key_values(pairs, "the setting"))}
    return alter(link, name, changes, dry_run, output)


@command.command("unset")
@click.argument("name", shell_complete=topic_names)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=topic_settings)
@undoable
@dry_run_option
@formatted
@connected
def unset(link: Link, name: str, keys: tuple[str, ...], dry_run: bool, output: str) -> int:
    """Let settings of a topic follow the broker again.

    \b
    penstock topic config unset orders retention.ms
    """
    if any("=" in key for key in keys):
        raise usage("unset takes keys only, without =VALUE")
    return alter(link, name, dict.fromkeys(keys), dry_run, output)


def alter(link: Link, name: str, changes: dict[str, str | None], dry_run: bool, output: str) -> int:
    """Change or, with None, unset settings of a topic; show before and after. Raises Failure."""
    from confluent_kafka.admin import (
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    before = {row["key"]: row["value"] for row in settings_of(link, name)}
    entries = [
        ConfigEntry(
            key,
            value,
            incremental_operation=(
                AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
            ),
        )
        for key, value in changes.items()
    ]
    resource = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=entries,
    )
    answers = link.admin().incremental_alter_configs(
        [resource], request_timeout=link.timeout_s, validate_only=dry_run
    )
    link.wait(answers[resource], name)
    after = dict(changes)
    if not dry_run and None in changes.values():
        inherited = {row["key"]: row["value"] for row in settings_of(link, name)}
        after |= {key: inherited.get(key) for key, value in changes.items() if value is None}
    rows: list[Row] = [
        {
            "key": key,
            "before": before.get(key),
            "after": "(the broker's)" if dry_run and changes[key] is None else after.get(key),
            "status": "would be changed" if dry_run else "changed",
        }
        for key in changes
    ]
    emit(rows, output, name="key")
    return OK
