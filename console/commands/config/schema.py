"""`penstock config schema`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from console.flags.complete import setting_names
from console.flags.output import formatted
from console.model.asking.failure import OK, Failure
from console.show.output import Row, emit

if TYPE_CHECKING:
    from appliance.config.setting import Setting


@click.command("schema")
@click.argument("keys", nargs=-1, metavar="[KEY]...", shell_complete=setting_names)
@click.option("-t", "--topic", is_flag=True, help="Topic settings instead of broker settings.")
@formatted
def command(keys: tuple[str, ...], topic: bool, output: str) -> int:
    """List every setting: type, default, range, meaning, and whether it is dynamic.

    \b
    penstock config schema -o json
    penstock config schema --topic flush.policy -o wide
    penstock config schema retention.ms          a topic's, because the broker has none of the name
    """
    from appliance.config.broker_settings import BROKER
    from appliance.config.topic_settings import TOPIC

    table = TOPIC if topic else BROKER
    rows = []
    for key in keys or sorted(table):
        if key in table:
            rows.append(_row(table[key], per_topic=topic))
        elif key in TOPIC:
            rows.append(_row(TOPIC[key], per_topic=True))
        else:
            raise _unknown(key, table)
    emit(rows, output, narrow=("key", "type", "default", "changes"), name="key")
    return OK


def _row(one: "Setting", *, per_topic: bool) -> Row:
    from appliance.config.setting import TYPE_NAMES, shown

    return {
        "key": one.name,
        "type": TYPE_NAMES[one.type],
        "default": shown(one.default),
        "changes": "per topic" if per_topic else one.mode,
        "low": one.low,
        "high": one.high,
        "choices": list(one.choices),
        "no_effect": one.inert or None,
        "doc": one.doc,
    }


def _unknown(key: str, table: Iterable[str]) -> Failure:
    from difflib import get_close_matches

    near = get_close_matches(key, table, 1, 0.7)
    hint = f"did you mean {near[0]}?" if near else "penstock config schema shows all of them"
    return Failure(f"{key} is not a setting", hint, name="INVALID_CONFIG", kafka_code=40)
