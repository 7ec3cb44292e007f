"""`penstock config describe`."""

import click

from appliance.cli.complete import setting_names
from appliance.cli.config_target import Target, in_force, settings_of, targeted
from appliance.cli.exits import OK
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted, plain


@click.command("describe")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=setting_names)
@targeted
@formatted
@connected
def command(link: Link, keys: tuple[str, ...], target: Target | None, output: str) -> int:
    """Explain settings: what they do, their value, and every place that has one.

    \b
    penstock config describe flush.policy -t orders
    penstock config describe log.retention.ms
    """
    rows = settings_of(link, in_force(link, target), keys)
    if output not in ("table", "wide"):
        emit(rows, output, name="key")
        return OK
    for row in rows:
        _print(row)
    return OK


def _print(row: Row) -> None:
    print(plain(row["key"]))
    if row["doc"]:
        print(f"  {plain(row['doc'])}")
    for name in ("type", "value", "source", "default", "read_only"):
        shown = "(hidden)" if row["sensitive"] and name in ("value", "default") else row[name]
        print(f"  {name.replace('_', ' '):<12}{plain(shown)}")
    for number, place in enumerate(row["places"]):
        value = "(hidden)" if row["sensitive"] else plain(place["value"])
        begin = "set in" if not number else ""
        print(f"  {begin:<12}{plain(place['key'])} = {value} ({place['source']})")
    print()
