"""`penstock config lint`."""

import click

from appliance.cli.config_file import text_of
from appliance.cli.exits import NEGATIVE, OK
from appliance.cli.output import Row, emit, formatted, say


@click.command("lint")
@click.argument("file")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@formatted
def command(file: str, strict: bool, output: str) -> int:
    """Check a server.properties file as penstock up would read it. Exit code 4: it is wrong.

    Everything that there is to say is said at once, with the line that it is about.

    \b
    penstock config lint server.properties
    penstock config lint server.properties --strict -o json
    """
    from appliance.config.load import examine

    rows: list[Row] = [
        {"line": one.line, "level": "error" if one.wrong else "warning", "message": one.text}
        for one in examine(text_of(file), {})[1]
    ]
    emit(rows, output, name="message")
    bad = any(strict or row["level"] == "error" for row in rows)
    say(f"{file}: {'wrong' if bad else 'good'}, {len(rows)} remark(s)")
    return NEGATIVE if bad else OK
