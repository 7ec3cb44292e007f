"""`penstock config lint`."""

import click

from appliance.base.errors import ConfigError
from appliance.cli.config_file import read
from appliance.cli.exits import NEGATIVE, OK
from appliance.cli.output import Row, emit, formatted, say


@click.command("lint")
@click.argument("file")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@formatted
def command(file: str, strict: bool, output: str) -> int:
    """Check a server.properties file as penstock up would read it. Exit code 4: it is wrong.

    \b
    penstock config lint server.properties
    penstock config lint server.properties --strict -o json
    """
    rows: list[Row] = []
    try:
        _, warnings = read(file)
        rows = [{"level": "warning", "message": text} for text in warnings]
    except ConfigError as wrong:
        rows = [{"level": "error", "message": str(wrong)}]
    emit(rows, output, name="message")
    bad = any(strict or row["level"] == "error" for row in rows)
    say(f"{file}: {'wrong' if bad else 'good'}, {len(rows)} remark(s)")
    return NEGATIVE if bad else OK
