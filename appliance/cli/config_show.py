"""`penstock config show`."""

import click

from appliance.base.errors import ConfigError
from appliance.cli.config_file import text_of
from appliance.cli.exits import OK, usage
from appliance.cli.output import Row, emit, formatted, say


@click.command("show")
@click.argument("file")
@click.option("-a", "--all", "everything", is_flag=True, help="Those with their default too.")
@formatted
def command(file: str, everything: bool, output: str) -> int:
    """Show what a server.properties file means: values as they are understood, and defaults.

    \b
    penstock config show server.properties
    """
    from appliance.config.broker_settings import BROKER
    from appliance.config.load import load
    from appliance.config.setting import shown

    try:
        config, warnings = load(text_of(file), {}, file_name=file)
    except ConfigError as wrong:
        raise usage(str(wrong)) from None
    for text in warnings:
        say(text)
    rows: list[Row] = []
    for key, setting in sorted(BROKER.items()):
        entry = config.entry(key)
        if entry is None and not everything:
            continue
        value = shown(config.get(key))
        row: Row = {"key": key, "value": None if setting.sensitive else value}
        row |= {"source": "file" if entry else "default", "default": shown(setting.default)}
        rows.append(row | {"doc": setting.doc, "no_effect": setting.inert or None})
    emit(rows, output, narrow=("key", "value", "source", "default"), name="key")
    return OK
