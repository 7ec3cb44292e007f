"""`penstock config schema`."""

import click

from appliance.cli.exits import OK
from appliance.cli.output import Row, emit, formatted


@click.command("schema")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("-t", "--topic", is_flag=True, help="Those of topics, not of the broker.")
@formatted
def command(keys: tuple[str, ...], topic: bool, output: str) -> int:
    """Show every setting that there is: type, default, range, what it does, when it may change.

    \b
    penstock config schema -o json
    penstock config schema --topic flush.policy -o wide
    """
    from appliance.config.broker_settings import BROKER
    from appliance.config.setting import TYPE_NAMES, shown
    from appliance.config.topic_settings import TOPIC

    rows: list[Row] = [
        {
            "key": one.name,
            "type": TYPE_NAMES[one.type],
            "default": shown(one.default),
            "changes": "per topic" if topic else one.mode,
            "low": one.low,
            "high": one.high,
            "choices": list(one.choices),
            "no_effect": one.inert or None,
            "doc": one.doc,
        }
        for one in sorted((TOPIC if topic else BROKER).values(), key=lambda one: one.name)
        if not keys or one.name in keys
    ]
    emit(rows, output, narrow=("key", "type", "default", "changes"), name="key")
    return OK
